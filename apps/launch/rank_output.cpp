// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/rank_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "apps/accelerate/printable.hpp"
#include "engine/io/file_descriptor.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {

RankOutput::RankOutput(int rank, const std::optional<std::filesystem::path>& log,
                       std::optional<int> tee)
    : rank_(rank), tee_(tee) {
  if (!log) return;
  log_.reset(open(log->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log_) {
    throw UsageError(fmt::format("cannot write {}: {}", log->string(), system_error_text(errno)));
  }
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
  while (log_ && !bytes.empty()) {
    const ssize_t written = write(log_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      log_trouble_ = system_error_text(errno);
      return log_.reset();
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace collar::apps
