// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "apps/accelerate/screen.hpp"
#include "apps/counted.hpp"
#include "apps/exit_codes.hpp"
#include "apps/launch/orphan_guard.hpp"
#include "apps/launch/rank_output.hpp"
#include "apps/launch/reserved_port.hpp"
#include "apps/launch/signal_queue.hpp"
#include "comm/rendezvous/handshake.hpp"
#include "engine/io/file_descriptor.hpp"
#include "kernels/core/error.hpp"
#include "kernels/runtime/cpu_context.hpp"

namespace collar::apps {
namespace {

using Clock = std::chrono::steady_clock;

struct Rank {
  pid_t pid = -1;
  FileDescriptor pipe{};  ///< what it prints; empty for rank 0, and at the end
  RankOutput output;
  bool running = false;
  int status = 0;  ///< as waitpid gives it
};

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

bool succeeded(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
bool exited_with(int status, ExitCode code) {
  return WIFEXITED(status) && WEXITSTATUS(status) == to_int(code);
}

/// The rank has stopped because it was asked to, and so have the others, together.
bool stopped_orderly(int status) {
  return exited_with(status, ExitCode::stopped_and_saved) ||
         exited_with(status, ExitCode::interrupted) || exited_with(status, ExitCode::terminated);
}

class Job {
 public:
  Job(const std::vector<std::string>& command, const LaunchOptions& options) : options_(options) {
    if (options_.log_dir) {
      std::error_code error;
      std::filesystem::create_directories(*options_.log_dir, error);
      if (error) {
        throw UsageError(
            fmt::format("cannot make {}: {}", options_.log_dir->string(), error.message()));
      }
    }
    const std::string program = find_program(command.front());
    const std::string token = comm::make_job_token();
    for (int rank = 0; rank < options_.ranks; ++rank) {
      ranks_.push_back(
          {.output = {rank, rank > 0 ? log_of(rank) : std::nullopt,
                      options_.tee ? std::optional(options_.messages) : std::nullopt}});
    }
    try {
      for (int rank = 0; rank < options_.ranks; ++rank) {
        start_rank(rank, {.program = program,
                          .arguments = command,
                          .variables = rank_variables(rank, options_.ranks, port_.port(), token)});
      }
    } catch (...) {
      end_at_once();
      throw;
    }
  }
  ~Job() { end_at_once(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int run() {
    while (anyone_running()) {
      wait_for_news();
      while (const int signal = signals_.next()) {
        if (signal != SIGCHLD) pass_on(signal);
      }
      reap();
      if (deadline_ && Clock::now() >= *deadline_) {
        signal_all(SIGKILL);
        killed_ = true;
        deadline_.reset();
      }
    }
    for (Rank& rank : ranks_) {
      read_output(rank);
      rank.output.finish();
    }
    return verdict();
  }

 private:
  std::optional<std::filesystem::path> log_of(int rank) const {
    if (!options_.log_dir) return std::nullopt;
    return *options_.log_dir / fmt::format("rank-{}.log", rank);
  }

  void start_rank(int number, RankCommand command) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    int ends[2] = {-1, -1};
    if (number > 0 && pipe2(ends, O_CLOEXEC) != 0) {
      throw DeviceError("launch: cannot make a pipe: " + system_error_text(errno));
    }
    rank.pipe.reset(ends[0]);
    const FileDescriptor other_end(ends[1]);
    command.output = other_end.get();
    if (number > 0) fcntl(rank.pipe.get(), F_SETFL, O_NONBLOCK);
    rank.pid = start(command);
    rank.running = true;
    guard_.add(rank.pid);
  }

  bool anyone_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
  }

  void wait_for_news() {
    std::vector<pollfd> sources = {{signals_.descriptor(), POLLIN, 0}};
    for (const Rank& rank : ranks_)
      sources.push_back({rank.pipe.get(), POLLIN, 0});  // -1 is skipped
    int timeout = -1;
    if (deadline_) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - Clock::now());
      timeout = static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1'000'000));
    }
    poll(sources.data(), sources.size(), timeout);
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (sources[i + 1].revents != 0) read_output(ranks_[i]);
    }
  }

  /// Takes what is there, without waiting; a rank that prints faster than we read waits for us.
  void read_output(Rank& rank) {
    std::array<char, 65536> buffer;
    for (int round = 0; rank.pipe && round < 64; ++round) {
      const ssize_t got = read(rank.pipe.get(), buffer.data(), buffer.size());
      if (got > 0) {
        rank.output.take({buffer.data(), static_cast<std::size_t>(got)});
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else {
        if (got == 0) rank.pipe.reset();
        return;
      }
    }
  }

  void reap() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      siginfo_t info{};
      if (!rank.running ||
          waitid(P_PID, static_cast<id_t>(rank.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        continue;
      }
      if (info.si_pid == 0) continue;
      kill(-rank.pid, SIGKILL);  // what it left behind; until it is reaped the group is its own
      waitpid(rank.pid, &rank.status, 0);
      rank.running = false;
      guard_.remove(rank.pid);
      if (!succeeded(rank.status)) on_failure(i);
    }
  }

  void on_failure(std::size_t index) {
    failed_.push_back(index);
    if (stop_signal_ != 0 || failed_.size() > 1) return;
    if (stopped_orderly(ranks_[index].status)) {  // the others may be saving their state
      deadline_ = Clock::now() + options_.grace;
      return;
    }
    const auto others =
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
    say(fmt::format("rank {} (pid {}) {}{}", index, ranks_[index].pid,
                    how_it_ended(ranks_[index].status),
                    others > 0 ? ": stopping " + counted(others, "other rank") : ""));
    stop_all(SIGTERM, options_.grace);
  }

  void pass_on(int signal) {
    if (signal == SIGUSR2) return signal_all(signal);
    const bool again = signal == SIGINT && stop_signal_ == SIGINT;
    if (again && Clock::now() - stop_begin_ < kSameRequest) return;
    say(fmt::format("{}: {} all ranks", strsignal(signal), again ? "killing" : "passing it on to"));
    stop_signal_ = signal;
    stop_begin_ = Clock::now();
    if (again) {
      signal_all(SIGKILL);
      killed_ = true;
    } else {
      stop_all(signal, options_.stop_grace);
    }
  }

  void stop_all(int signal, std::chrono::milliseconds grace) {
    signal_all(signal);
    signal_all(SIGCONT);  // a stopped process sees no signal but SIGKILL
    deadline_ = Clock::now() + grace;
  }

  void signal_all(int signal) {
    for (const Rank& rank : ranks_) {
      if (rank.running) kill(-rank.pid, signal);
    }
  }

  /// The rank whose end explains the others': the first to fail, unless all it had to say was that
  /// it had lost another rank, and another one fell by itself.
  std::size_t culprit() const {
    for (const std::size_t index : failed_) {
      const int status = ranks_[index].status;
      const bool our_signal =
          WIFSIGNALED(status) && index != failed_.front() &&
          (WTERMSIG(status) == SIGTERM || (WTERMSIG(status) == SIGKILL && killed_));
      const bool follows =
          our_signal || exited_with(status, ExitCode::rank_lost) || stopped_orderly(status);
      if (!follows) return index;
    }
    return failed_.front();
  }

  int verdict() const {
    report_log_trouble();
    if (failed_.empty()) return 0;
    if (stop_signal_ != 0) {
      const int status = ranks_.front().status;
      return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status)
                                                           : 128 + stop_signal_;
    }
    const std::size_t index = culprit();
    const Rank& rank = ranks_[index];
    // All have stopped together: the first rank knows whether the state is saved.
    if (stopped_orderly(rank.status) && stopped_orderly(ranks_.front().status))
      return WEXITSTATUS(ranks_.front().status);
    report_end_of(index);
    return WIFEXITED(rank.status) ? WEXITSTATUS(rank.status) : to_int(ExitCode::rank_lost);
  }

  void report_end_of(std::size_t index) const {
    const Rank& rank = ranks_[index];
    if (index != failed_.front()) {
      say(fmt::format("but it was rank {} (pid {}) that failed first: it {}", index, rank.pid,
                      how_it_ended(rank.status)));
    }
    const auto& lines = rank.output.last_lines();
    if (index == 0 || lines.empty() || options_.tee) return;  // it has been shown
    const auto log = log_of(static_cast<int>(index));
    std::string text = fmt::format("the last lines of rank {}{}:", index,
                                   log ? " (all of them: " + log->string() + ")" : "");
    for (const std::string& line : lines) text += fmt::format("\n[r{}] {}", index, line);
    say(text);
  }

  void report_log_trouble() const {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::string& trouble = ranks_[i].output.log_trouble();
      if (!trouble.empty()) say(fmt::format("the log of rank {} is incomplete: {}", i, trouble));
    }
  }

  void say(const std::string& text) const {
    write_all(options_.messages, "collar: " + text + "\n");
  }

  void end_at_once() {
    for (Rank& rank : ranks_) {
      if (rank.running) {
        kill(-rank.pid, SIGKILL);
        waitpid(rank.pid, &rank.status, 0);
        guard_.remove(rank.pid);
        rank.running = false;
      }
      rank.pipe.reset();
    }
  }

  LaunchOptions options_;
  ReservedPort port_;
  OrphanGuard guard_;
  SignalQueue signals_{SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  std::vector<Rank> ranks_;
  std::vector<std::size_t> failed_;  ///< in the order in which it was seen
  std::optional<Clock::time_point> deadline_;
  int stop_signal_ = 0;
  Clock::time_point stop_begin_;  // of the latest that was passed on
  bool killed_ = false;
};

}  // namespace

Variables rank_variables(int rank, int ranks, int port, const std::string& token) {
  Variables variables = {{"RANK", std::to_string(rank)},
                         {"LOCAL_RANK", std::to_string(rank)},
                         {"WORLD_SIZE", std::to_string(ranks)},
                         {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", std::to_string(port)},
                         {"COLLAR_JOB_TOKEN", token}};
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    variables.emplace_back("OMP_NUM_THREADS",
                           std::to_string(std::max(1, available_cpus() / ranks)));
  }
  return variables;
}

int launch_ranks(const std::vector<std::string>& command, const LaunchOptions& options) {
  if (command.empty()) throw UsageError("launch: expected a program to run");
  if (options.ranks < 1 || options.ranks > OrphanGuard::kMostGroups) {
    throw UsageError(fmt::format("launch: expected 1 to {} ranks, got {}", OrphanGuard::kMostGroups,
                                 options.ranks));
  }
  return Job(command, options).run();
}

}  // namespace collar::apps
