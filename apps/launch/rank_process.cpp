// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/rank_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

/// Our environment with the variables in place of those of the same names.
std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced |= text.starts_with(name + "=");
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

/// The form in which exec wants strings.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Prepared {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int null;
  int output;
  pid_t launcher;
};

/// Runs in the memory of the parent, which waits: only system calls, no allocation, no return.
[[noreturn]] void become(const Prepared& prepared, volatile int* error) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != prepared.launcher) _exit(127);  // it died before we asked for the signal
  dup2(prepared.null, STDIN_FILENO);
  if (prepared.output >= 0) {
    dup2(prepared.output, STDOUT_FILENO);
    dup2(prepared.output, STDERR_FILENO);
  }
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(prepared.program, prepared.arguments, prepared.environment);
  *error = errno;
  _exit(127);
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    throw UsageError(fmt::format("cannot run {}: {}", name, std::strerror(errno)));
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw UsageError(fmt::format("cannot run {}: no such program in PATH", name));
}

pid_t start(const RankCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.variables);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) throw DeviceError(fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  const Prepared prepared{command.program.c_str(),
                          argument_pointers.data(),
                          environment_pointers.data(),
                          null,
                          command.output,
                          getpid()};
  volatile int error = 0;
  const pid_t pid = vfork();
  if (pid == 0) become(prepared, &error);
  if (pid < 0) error = errno;
  close(null);
  if (pid < 0 || error != 0) {
    throw UsageError(
        fmt::format("cannot run {}: {}", command.program, std::strerror(static_cast<int>(error))));
  }
  return pid;
}

}  // namespace collar::apps
