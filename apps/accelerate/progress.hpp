// SPDX-License-Identifier: Apache-2.0
// How a run shows that it moves: on a terminal one bar that is redrawn at most ten times a second,
// elsewhere a plain line for the steps that are logged. Only the main process has one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace collar::apps {

struct ProgressOptions {
  int descriptor = 2;  ///< results go to stdout, the rest to stderr
  bool bar = false;    ///< see wants_bar
  bool color = false;  ///< see wants_color
  int columns = 0;     ///< width of the bar's line; 0: as wide as the terminal
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// A terminal that can redraw a line, unless the user asked for plain lines.
bool wants_bar(int descriptor, bool plain);
/// wants_bar, unless NO_COLOR is set and not empty.
bool wants_color(int descriptor, bool plain);

struct StepProgress {
  int epoch = 1;  ///< from 1
  int epochs = 1;
  std::int64_t step = 0;         ///< of this epoch, from 1
  std::int64_t steps = 0;        ///< in this epoch
  std::int64_t total_step = 0;   ///< of the run, from 1
  std::int64_t total_steps = 0;  ///< in the run
  double loss = 0;
  double lr = 0;
  double images_per_second = 0;
  double data_wait = 0;  ///< share of the time spent waiting for images, 0 to 1
  bool logged = true;    ///< gets a line where there is no bar
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  /// Clears the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// To be called after every step; shows what is due.
  void step(const StepProgress& progress);
  /// A line, or several, that stay above the bar.
  void line(const std::string& text);
  /// Takes the bar away until the next step: something else may write a line.
  void clear();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void measure(const StepProgress& progress);
  std::string remaining(const StepProgress& progress, std::string_view gap) const;
  std::string bar_line(const StepProgress& progress) const;

  ProgressOptions options_;
  std::optional<TimePoint> last_step_;
  std::optional<TimePoint> last_drawn_;
  std::optional<double> seconds_per_step_;  ///< smoothed; the first step is not typical
  bool drawn_ = false;
};

/// "1:02:03", "2:03"
std::string clock_text(double seconds);

}  // namespace collar::apps
