// SPDX-License-Identifier: Apache-2.0
// Plays the ranks of a job by processes: starts comm_rank_program once a rank, collects what each
// prints and how it ends, and lets none outlive the test.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous/deadline.hpp"
#include "comm/rendezvous/file_descriptor.hpp"
#include "comm/rendezvous/handshake.hpp"

namespace collar::test {

using Variables = std::map<std::string, std::string>;

/// A program started with our variables and these, in place of those of the same names; its output
/// is read when it has ended.
class ChildProcess {
 public:
  ChildProcess(const std::filesystem::path& program, std::vector<std::string> arguments,
               const Variables& variables) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    output_.reset(ends[0]);
    const comm::FileDescriptor write_end(ends[1]);
    arguments.insert(arguments.begin(), program.string());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
    }
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    const int error =
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + program.string());
  }
  ~ChildProcess() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  /// Waits until a signal has stopped it; false if it does not come to that.
  bool wait_until_stopped(comm::Deadline deadline) const {
    while (!deadline.passed()) {
      std::ifstream status(fmt::format("/proc/{}/stat", pid_));
      std::string pid, name, state;
      status >> pid >> name >> state;
      if (state == "T") return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  /// Reads up to the end of the output and reaps the process; false if it has not ended by then.
  bool finish(comm::Deadline deadline) {
    char chunk[4096];
    for (;;) {
      pollfd entry{output_.get(), POLLIN, 0};
      if (::poll(&entry, 1, deadline.poll_milliseconds()) <= 0) return false;
      const ssize_t n = ::read(output_.get(), chunk, sizeof chunk);
      if (n <= 0) break;
      text_.append(chunk, static_cast<std::size_t>(n));
    }
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
    return true;
  }

  const std::string& output() const { return text_; }
  /// The exit code, or minus the signal that ended it.
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_); }

 private:
  comm::FileDescriptor output_;
  pid_t pid_ = -1;
  std::string text_;
  int status_ = 0;
  bool ended_ = false;
};

inline std::filesystem::path rank_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "comm_rank_program";
}

/// A job: n processes that run `scenario` and meet at an abstract unix socket of rank 0.
class Job {
 public:
  Job(int size, const std::vector<std::string>& scenario, const Variables& extra = {})
      : Job(size, size, scenario, extra) {}
  /// A world of `size` of which only the first `started` ranks come.
  Job(int size, int started, const std::vector<std::string>& scenario, const Variables& extra) {
    const std::string token = comm::make_job_token();
    for (int rank = 0; rank < started; ++rank) {
      Variables variables = {{"RANK", std::to_string(rank)},
                             {"WORLD_SIZE", std::to_string(size)},
                             {"LOCAL_RANK", std::to_string(rank)},
                             {"LOCAL_WORLD_SIZE", std::to_string(size)},
                             {"MASTER_ADDR", "@collar-test-job-" + token.substr(0, 16)},
                             {"MASTER_PORT", "1"},  // unused, but a job has one
                             {"COLLAR_JOB_TOKEN", token}};
      for (const auto& [name, value] : extra) variables[name] = value;
      ranks_.push_back(std::make_unique<ChildProcess>(rank_program(), scenario, variables));
    }
  }

  ChildProcess& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  /// Whether all ranks but `except` have ended in time.
  bool finish(std::chrono::seconds patience = std::chrono::seconds(20), int except = -1) {
    const comm::Deadline deadline = comm::Deadline::after(patience);
    bool all = true;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (static_cast<int>(i) != except) all = ranks_[i]->finish(deadline) && all;
    return all;
  }

 private:
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

}  // namespace collar::test
