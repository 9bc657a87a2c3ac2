// SPDX-License-Identifier: Apache-2.0
// How far apart two words are: what "did you mean …?" is made of.
#pragma once

#include <string_view>

namespace collar::nn {

/// Insertions, deletions, replacements and exchanges of neighbours that turn one word into the
/// other, ignoring case (Damerau and Levenshtein, restricted). Only the first 64 letters count.
int edit_distance(std::string_view a, std::string_view b);

}  // namespace collar::nn
