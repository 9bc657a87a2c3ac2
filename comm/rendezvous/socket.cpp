// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family() const { return storage.ss_family; }
};

Address unix_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() > sizeof address.sun_path)
    throw UsageError(fmt::format("socket name {} has {} bytes, at most {} fit", name, name.size(),
                                 sizeof address.sun_path));
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);  // abstract: begins with NUL
  Address result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return result;
}

/// Every address of the endpoint; `problem` says why there is none.
std::vector<Address> resolve(const Endpoint& endpoint, std::string& problem) {
  if (endpoint.is_unix()) return {unix_address(endpoint.host)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<Address> addresses;
  if (error != 0) {
    problem = fmt::format("cannot resolve {}: {}", endpoint.host, ::gai_strerror(error));
    return addresses;
  }
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Address address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

bool is_loopback(const Address& address) {
  if (address.family() == AF_UNIX) return true;
  if (address.family() == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.storage, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &address.storage, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127);
}

FileDescriptor make_socket(int family) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (socket && family != AF_UNIX)
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

std::uint16_t port_of(int socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0)
    return 0;
  sockaddr_in v4;
  std::memcpy(&v4, &address.storage, sizeof v4);
  return ntohs(v4.sin_port);  // sockaddr_in6 has its port in the same place
}

/// 0, or the error of the attempt.
int try_connect(int socket, const Address& address, Deadline deadline) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0)
    return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd entry{socket, POLLOUT, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, deadline.poll_milliseconds());
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return errno;
    if (deadline.passed()) return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

/// A connection to a free port of the ephemeral range can, by TCP's simultaneous open, reach
/// itself.
bool reaches_itself(int socket) {
  Address here, there;
  here.length = there.length = sizeof here.storage;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&here.storage), &here.length) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&there.storage), &there.length) == 0 &&
         here.family() != AF_UNIX && here.length == there.length &&
         std::memcmp(&here.storage, &there.storage, here.length) == 0;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  if (endpoint.is_unix()) return "unix:" + endpoint.host;
  if (endpoint.host.find(':') != std::string::npos)
    return fmt::format("[{}]:{}", endpoint.host, endpoint.port);
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

bool is_loopback(const Endpoint& endpoint) {
  std::string problem;
  const std::vector<Address> addresses = resolve(endpoint, problem);
  for (const Address& address : addresses)
    if (!is_loopback(address)) return false;
  return !addresses.empty();
}

Listener listen_on(const Endpoint& endpoint, int backlog) {
  std::string problem;
  for (const Address& address : resolve(endpoint, problem)) {
    Listener listener{make_socket(address.family()), endpoint};
    const int on = 1;
    if (!listener.socket) {
      problem = system_error_text(errno);
      continue;
    }
    if (!endpoint.is_unix())
      ::setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener.socket.get(), reinterpret_cast<const sockaddr*>(&address.storage),
               address.length) == 0 &&
        ::listen(listener.socket.get(), backlog) == 0) {
      if (!endpoint.is_unix()) listener.endpoint.port = port_of(listener.socket.get());
      return listener;
    }
    problem = errno == EADDRINUSE ? "another process uses this address; choose another port, or 0"
                                  : system_error_text(errno);
  }
  throw UsageError(fmt::format("cannot listen on {}: {}", to_string(endpoint), problem));
}

FileDescriptor accept_from(const FileDescriptor& listener) {
  for (;;) {
    FileDescriptor socket(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      const int on = 1;  // unix sockets refuse this: they never delay a message anyway
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    if (errno != EINTR && errno != ECONNABORTED) return socket;
  }
}

FileDescriptor connect_to(const Endpoint& endpoint, Deadline deadline) {
  std::string problem;
  std::chrono::milliseconds pause(2);
  do {
    for (const Address& address : resolve(endpoint, problem)) {
      FileDescriptor socket = make_socket(address.family());
      const int error = socket ? try_connect(socket.get(), address, deadline) : errno;
      if (error == 0 && !reaches_itself(socket.get())) return socket;
      problem = system_error_text(error == 0 ? ECONNREFUSED : error);
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline.remaining()));
    pause = std::min(2 * pause, std::chrono::milliseconds(200));
  } while (!deadline.passed());
  throw RankLostError(fmt::format("cannot connect to {} within {}: {}", to_string(endpoint),
                                  seconds_text(deadline.allowance()), problem));
}

void wait_for(int socket, short events, Deadline deadline, const std::string& what) {
  pollfd entry{socket, events, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, deadline.poll_milliseconds());
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR)
      throw RankLostError(fmt::format("{}: poll failed: {}", what, system_error_text(errno)));
    if (deadline.passed())
      throw RankLostError(
          fmt::format("{}: no answer within {}", what, seconds_text(deadline.allowance())));
  }
}

void send_all(int socket, std::span<const std::byte> bytes, Deadline deadline,
              const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(socket, POLLOUT, deadline, what);
    } else if (errno != EINTR) {
      throw RankLostError(fmt::format("{}: {}", what, system_error_text(errno)));
    }
  }
}

void receive_all(int socket, std::span<std::byte> bytes, Deadline deadline,
                 const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (received > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(received));
    } else if (received == 0) {
      throw RankLostError(fmt::format("{}: the connection was closed", what));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(socket, POLLIN, deadline, what);
    } else if (errno != EINTR) {
      throw RankLostError(fmt::format("{}: {}", what, system_error_text(errno)));
    }
  }
}

}  // namespace collar::comm
