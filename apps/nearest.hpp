// SPDX-License-Identifier: Apache-2.0
// "Did you mean …?" for options, verbs, models and whatever else people type.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collar::apps {

/// Insertions, deletions, replacements and exchanges of neighbours that turn one word into the
/// other, ignoring case (Damerau and Levenshtein, restricted).
int edit_distance(std::string_view a, std::string_view b);

/// The candidate that is closest to `wrong`, if any is close enough to be meant: at most a third of
/// its letters are wrong, or it begins with `wrong`.
std::optional<std::string> nearest(std::string_view wrong,
                                   const std::vector<std::string>& candidates);

/// "; did you mean --batch-size?", or nothing.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates);

}  // namespace collar::apps
