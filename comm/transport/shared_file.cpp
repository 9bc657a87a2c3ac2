// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/shared_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "comm/rendezvous/socket.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

/// MemAvailable of /proc/meminfo; the largest number if it is not there.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes << 10;
    file.ignore(64, '\n');
  }
  return SIZE_MAX;
}

/// A message with room for one descriptor.
struct Envelope {
  explicit Envelope(ShareNotice& notice) : part{&notice, sizeof notice} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
  }
  void make_room() {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }

  iovec part;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};

}  // namespace

FileDescriptor make_shared_file(std::size_t bytes) {
  const auto fail = [&](int error) {
    throw DeviceError(
        fmt::format("cannot get {} bytes of shared memory: {}", bytes, system_error_text(error)));
  };
  // The kernel would rather kill a process than refuse pages it does not have.
  if (const std::size_t available = available_memory(); bytes > available)
    throw DeviceError(fmt::format(
        "cannot get {} bytes of shared memory: only {} bytes are available", bytes, available));
  FileDescriptor file(::memfd_create("collar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail(errno);
  int error = 0;
  do {
    error = ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0) fail(error);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) fail(errno);
  return file;
}

std::shared_ptr<std::byte> map_shared_file(const FileDescriptor& file, std::size_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (::fstat(file.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes ||
      seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    throw DeviceError(fmt::format("a peer's shared memory has {} bytes, expected {} bytes, sealed",
                                  status.st_size, bytes));
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED)
    throw DeviceError(
        fmt::format("cannot map {} bytes of shared memory: {}", bytes, system_error_text(errno)));
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) { ::munmap(p, bytes); }};
}

void send_descriptor(int socket, const ShareNotice& notice, const FileDescriptor& file,
                     Deadline deadline, const std::string& what) {
  ShareNotice copy = notice;
  Envelope envelope(copy);
  if (file) {
    envelope.make_room();
    cmsghdr* header = CMSG_FIRSTHDR(&envelope.message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor = file.get();
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  while (::sendmsg(socket, &envelope.message, MSG_NOSIGNAL) < 0) {
    if (errno == EAGAIN)
      wait_for(socket, POLLOUT, deadline, what);
    else if (errno != EINTR)
      throw RankLostError(fmt::format("{}: {}", what, system_error_text(errno)));
  }
}

FileDescriptor receive_descriptor(int socket, ShareNotice& notice, Deadline deadline,
                                  const std::string& what) {
  Envelope envelope(notice);
  envelope.make_room();
  ssize_t received = 0;
  while ((received = ::recvmsg(socket, &envelope.message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EAGAIN)
      wait_for(socket, POLLIN, deadline, what);
    else if (errno != EINTR)
      throw RankLostError(fmt::format("{}: {}", what, system_error_text(errno)));
  }
  FileDescriptor file;
  for (cmsghdr* header = CMSG_FIRSTHDR(&envelope.message); header != nullptr;
       header = CMSG_NXTHDR(&envelope.message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    file.reset(descriptor);
  }
  if (received == 0) throw RankLostError(what + ": it has ended");
  if (static_cast<std::size_t>(received) != sizeof notice)
    throw RankLostError(fmt::format("{}: a notice of {} bytes", what, received));
  if (!file && notice.failed == 0)
    throw DeviceError(what + ": no descriptor came with its notice (too many open files?)");
  return file;
}

}  // namespace collar::comm
