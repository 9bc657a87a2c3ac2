// SPDX-License-Identifier: Apache-2.0
// "Did you mean …?" for options, verbs, variables and whatever else people type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collar::apps {

/// The candidate that is closest to `wrong`, if any is close enough to be meant: at most a third of
/// its letters are wrong, or it begins with `wrong`, or all the words of one (between dashes) are
/// among those of the other.
std::optional<std::string> nearest(std::string_view wrong,
                                   const std::vector<std::string>& candidates);

/// "; did you mean --batch-size?", or nothing.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

/// The same for names of options, with their dashes or without: knows what other programs call
/// them.
std::string did_you_mean_option(std::string_view wrong, std::vector<std::string> options);

}  // namespace collar::apps
