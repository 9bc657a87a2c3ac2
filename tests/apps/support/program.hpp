// SPDX-License-Identifier: Apache-2.0
// Runs the program `collar`, or any other, as a user would: arguments in; exit code, stdout and
// stderr out.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "apps/launch/rank_process.hpp"
#include "tests/support/golden.hpp"

namespace collar::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Asks every few milliseconds until it is true or the deadline has passed.
template <class Condition>
bool eventually(Condition&& condition,
                std::chrono::milliseconds deadline = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Whether there is a process of this id that is no zombie.
inline bool is_alive(pid_t pid) {
  const std::string status = read_text("/proc/" + std::to_string(pid) + "/stat");
  const auto state = status.rfind(") ");
  return state != std::string::npos && status[state + 2] != 'Z' && status[state + 2] != 'X';
}

struct Finished {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out;
  std::string err;
};

/// A program that is running. It is killed at the end of the scope, if it still is.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& command,
                          const apps::Variables& variables = {}) {
    // The shell sends the two outputs to files; it becomes the program, so its pid is the
    // program's.
    apps::RankCommand shell{
        .program = "/bin/sh",
        .arguments = {"sh", "-c", "exec \"$@\" >\"$0/out\" 2>\"$0/err\"", folder_.path().string()},
        .variables = variables};
    shell.arguments.insert(shell.arguments.end(), command.begin(), command.end());
    pid_ = apps::start(shell);
  }
  ~RunningProgram() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  pid_t pid() const { return pid_; }
  /// Nothing if it has been waited for: -1 would mean every process there is.
  void send(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }

  /// Throws if it has not ended by then.
  Finished wait(std::chrono::seconds deadline = std::chrono::seconds(60)) {
    int status = 0;
    const bool ended =
        eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, deadline);
    if (!ended) throw std::runtime_error("the program does not end");
    pid_ = -1;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            read_text(folder_.path() / "out"), read_text(folder_.path() / "err")};
  }

 private:
  TemporaryDirectory folder_;
  pid_t pid_ = -1;
};

/// `collar ARGUMENTS`.
inline Finished run_collar(std::vector<std::string> arguments,
                           const apps::Variables& variables = {}) {
  arguments.insert(arguments.begin(), COLLAR_PROGRAM);
  return RunningProgram(arguments, variables).wait();
}

}  // namespace collar::test
