// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "apps/accelerate/printable.hpp"
#include "engine/io/file_descriptor.hpp"

namespace collar::apps {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr double kSmoothing = 0.9;
constexpr int kWidestBar = 10;
constexpr int kNarrowestBar = 4;
constexpr std::string_view kClearLine = "\r\x1b[K";

int terminal_columns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string numbers(const StepProgress& progress, std::string_view gap) {
  return fmt::format("{0}loss {1:.4f}{0}lr {2:.3g}{0}{3:.1f} img/s{0}data {4:.0f}%", gap,
                     progress.loss, progress.lr, progress.images_per_second,
                     100 * progress.data_wait);
}

}  // namespace

bool wants_bar(int descriptor, bool plain) {
  return !plain && isatty(descriptor) == 1 && variable("TERM") != "dumb";
}

bool wants_color(int descriptor, bool plain) {
  return wants_bar(descriptor, plain) && variable("NO_COLOR").empty();
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, std::round(seconds)));
  const std::int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {}

Progress::~Progress() {
  clear();
}

void Progress::step(const StepProgress& progress) {
  measure(progress);
  if (options_.bar) {
    const auto now = options_.now();
    const bool last = progress.total_step == progress.total_steps;
    if (last_drawn_ && now - *last_drawn_ < kRedraw && !last) return;
    last_drawn_ = now;
    drawn_ = true;
    write_all(options_.descriptor, std::string(kClearLine) + bar_line(progress));
    return;
  }
  if (!progress.logged) return;
  write_all(options_.descriptor, fmt::format("epoch {}/{}  step {}/{}{}{}\n", progress.epoch,
                                             progress.epochs, progress.step, progress.steps,
                                             numbers(progress, "  "), remaining(progress, "  ")));
}

void Progress::measure(const StepProgress& progress) {
  const auto now = options_.now();
  if (last_step_ && progress.total_step > 1) {
    const double seconds = std::chrono::duration<double>(now - *last_step_).count();
    seconds_per_step_ =
        seconds_per_step_ ? kSmoothing * *seconds_per_step_ + (1 - kSmoothing) * seconds : seconds;
  }
  last_step_ = now;
}

std::string Progress::remaining(const StepProgress& progress, std::string_view gap) const {
  const std::int64_t left = progress.total_steps - progress.total_step;
  if (!seconds_per_step_ || left <= 0) return "";
  return fmt::format("{}{} left", gap, clock_text(*seconds_per_step_ * static_cast<double>(left)));
}

std::string Progress::bar_line(const StepProgress& progress) const {
  const std::string before = fmt::format("epoch {}/{} [", progress.epoch, progress.epochs);
  const std::string after = fmt::format("] {}/{}{}{}", progress.step, progress.steps,
                                        numbers(progress, " "), remaining(progress, " "));
  const int columns =
      options_.columns > 0 ? options_.columns : terminal_columns(options_.descriptor);
  const int room = std::max(10, columns - 1);
  const int width =
      std::clamp(room - static_cast<int>(before.size() + after.size()), kNarrowestBar, kWidestBar);
  const std::int64_t filled = width * progress.step / std::max<std::int64_t>(1, progress.steps);
  std::string bar(static_cast<std::size_t>(std::min<std::int64_t>(filled, width)), '=');
  bar += '>';
  bar.resize(static_cast<std::size_t>(width), ' ');
  const std::string plain = (before + bar + after).substr(0, static_cast<std::size_t>(room));
  if (!options_.color || plain.size() <= before.size() + bar.size()) return plain;
  return before + "\x1b[36m" + bar + "\x1b[0m" + plain.substr(before.size() + bar.size());
}

void Progress::line(const std::string& text) {
  clear();
  write_all(options_.descriptor, printable_lines(text));
}

void Progress::clear() {
  if (!drawn_) return;
  write_all(options_.descriptor, kClearLine);
  drawn_ = false;
}

}  // namespace collar::apps
