// SPDX-License-Identifier: Apache-2.0
// What a rank prints: written to its log, shown with its number in front if asked for, and the end
// of it remembered in bounded memory for the day it fails.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace collar::apps {

class RankOutput {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kLineBytes = 4096;  ///< longer lines are cut in what is remembered

  /// `log`: the file to append to; `tee`: the descriptor complete lines are shown on. Throws
  /// UsageError if the log cannot be opened.
  RankOutput(int rank, const std::optional<std::filesystem::path>& log, std::optional<int> tee);
  ~RankOutput();
  RankOutput(RankOutput&& other) noexcept;
  RankOutput& operator=(RankOutput&&) = delete;

  void take(std::string_view bytes);
  /// The rank will print no more: a last line without an end is complete.
  void finish();

  const std::deque<std::string>& last_lines() const { return lines_; }
  /// Why the log is incomplete, if it is.
  const std::string& log_trouble() const { return log_trouble_; }

 private:
  void write_log(std::string_view bytes);
  void end_line();

  int rank_;
  std::optional<int> tee_;
  int log_ = -1;
  std::string log_trouble_;
  std::string line_;
  std::deque<std::string> lines_;
};

}  // namespace collar::apps
