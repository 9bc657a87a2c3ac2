// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/rank_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/accelerate/printable.hpp"
#include "apps/accelerate/screen.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {

RankOutput::RankOutput(int rank, const std::optional<std::filesystem::path>& log,
                       std::optional<int> tee)
    : rank_(rank), tee_(tee) {
  if (!log) return;
  log_ = open(log->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log_ < 0) {
    throw UsageError(fmt::format("cannot write {}: {}", log->string(), std::strerror(errno)));
  }
}

RankOutput::RankOutput(RankOutput&& other) noexcept
    : rank_(other.rank_),
      tee_(other.tee_),
      log_(std::exchange(other.log_, -1)),
      log_trouble_(std::move(other.log_trouble_)),
      line_(std::move(other.line_)),
      lines_(std::move(other.lines_)) {}

RankOutput::~RankOutput() {
  if (log_ >= 0) close(log_);
}

void RankOutput::take(std::string_view bytes) {
  write_log(bytes);
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    line_.append(piece.substr(0, kLineBytes - line_.size()));
    if (end == std::string_view::npos) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void RankOutput::finish() {
  if (!line_.empty()) end_line();
}

void RankOutput::end_line() {
  lines_.push_back(printable(line_));
  if (lines_.size() > kLines) lines_.pop_front();
  if (tee_) write_all(*tee_, fmt::format("[r{}] {}\n", rank_, lines_.back()));
  line_.clear();
}

void RankOutput::write_log(std::string_view bytes) {
  while (log_ >= 0 && !bytes.empty()) {
    const ssize_t written = write(log_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      log_trouble_ = std::strerror(errno);
      close(std::exchange(log_, -1));
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace collar::apps
