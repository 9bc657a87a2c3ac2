// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/orphan_guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

/// The life of the guard: `input` ends when the last copy of its other end is closed.
[[noreturn]] void guard(int input) {
  setsid();  // out of reach of the terminal's signals
  dup2(input, 0);
  close_range(1, ~0U, 0);
  prctl(PR_SET_NAME, "collar-guard", 0, 0, 0);

  std::array<pid_t, OrphanGuard::kMostGroups> groups{};
  pid_t message = 0;
  for (;;) {
    const ssize_t got = read(0, &message, sizeof(message));  // pipes keep small messages whole
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(message)) break;
    const pid_t wanted = message > 0 ? 0 : -message;
    for (pid_t& slot : groups) {
      if (slot != wanted) continue;
      slot = message > 0 ? message : 0;
      break;
    }
  }
  for (const pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

OrphanGuard::OrphanGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw DeviceError("launch: cannot make a pipe: " + system_error_text(errno));
  }
  const FileDescriptor input(ends[0]);
  pipe_.reset(ends[1]);
  guard_ = fork();
  if (guard_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  if (guard_ < 0) {
    throw DeviceError("launch: cannot start a process: " + system_error_text(errno));
  }
}

OrphanGuard::~OrphanGuard() {
  pipe_.reset();
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void OrphanGuard::send(pid_t message) const {
  // A guard that is gone cannot be helped; PR_SET_PDEATHSIG still stands.
  while (write(pipe_.get(), &message, sizeof(message)) < 0 && errno == EINTR) {
  }
}

}  // namespace collar::apps
