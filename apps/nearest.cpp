// SPDX-License-Identifier: Apache-2.0
#include "apps/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nn/edit_distance.hpp"

namespace collar::apps {
namespace {

/// An option of ours by another name.
struct Synonym {
  const char* name;
  const char* option;
  const char* value = "";
};
constexpr Synonym kSynonyms[] = {{"amp", "precision", " bf16"},
                                 {"arch", "model"},
                                 {"bs", "batch-size"},
                                 {"checkpoint", "resume"},
                                 {"gradient-accumulation-steps", "grad-accum-steps"},
                                 {"image-size", "img-size"},
                                 {"input-size", "img-size"},
                                 {"learning-rate", "lr"},
                                 {"lr-scheduler", "sched"},
                                 {"max-grad-norm", "clip-grad"},
                                 {"nproc-per-node", "ranks"},
                                 {"num-processes", "ranks"},
                                 {"optimizer", "opt"},
                                 {"scheduler", "sched"},
                                 {"smoothing", "label-smoothing"},
                                 {"warmup-epochs", "warmup-steps"},
                                 {"wd", "weight-decay"}};

/// The words between dashes, sorted, but for those too short to tell anything.
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const std::string_view word = name.substr(0, name.find('-'));
    if (word.size() >= 3) words.push_back(word);
    name.remove_prefix(std::min(word.size() + 1, name.size()));
  }
  std::ranges::sort(words);
  return words;
}

/// Whether all the words of one name are among those of the other.
bool shares_words(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> of_a = words_of(a);
  const std::vector<std::string_view> of_b = words_of(b);
  if (of_a.empty() || of_b.empty()) return false;
  return std::ranges::includes(of_a, of_b) || std::ranges::includes(of_b, of_a);
}

}  // namespace

std::optional<std::string> nearest(std::string_view wrong,
                                   const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const std::string& candidate : candidates) {
    const bool begins = wrong.size() >= 3 && candidate.starts_with(wrong);
    const bool related = begins || shares_words(wrong, candidate);
    const int edits = nn::edit_distance(wrong, candidate);
    const auto limit = static_cast<int>(std::max<std::size_t>(1, candidate.size() / 3));
    if (!related && edits > limit) continue;
    const int distance = related ? std::min(edits, 1) : edits;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& candidates) {
  const auto found = nearest(wrong, candidates);
  return found ? "; did you mean " + *found + "?" : "";
}

std::string did_you_mean_option(std::string_view wrong, std::vector<std::string> options) {
  const std::string dashes(wrong.substr(0, wrong.find_first_not_of('-')));
  std::map<std::string, std::string> meanings;
  for (const Synonym& synonym : kSynonyms) {
    if (std::ranges::find(options, dashes + synonym.option) == options.end()) continue;
    meanings[dashes + synonym.name] = dashes + synonym.option + synonym.value;
  }
  for (const auto& [name, meaning] : meanings) options.push_back(name);
  const auto found = nearest(wrong, options);
  if (!found) return "";
  return fmt::format("; did you mean {}?", meanings.contains(*found) ? meanings[*found] : *found);
}

}  // namespace collar::apps
