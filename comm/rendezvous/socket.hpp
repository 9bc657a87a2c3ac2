// SPDX-License-Identifier: Apache-2.0
// Stream sockets with deadlines: listening, connecting, sending and receiving whole messages. All
// descriptors are close-on-exec and non-blocking, no call raises SIGPIPE, a signal interrupts
// nothing, and messages name the address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "comm/rendezvous/deadline.hpp"
#include "comm/rendezvous/file_descriptor.hpp"

namespace collar::comm {

/// A host (name, IPv4 or IPv6 address) and a port; or, with a host that begins with '@', an
/// abstract unix socket of this machine, which needs no port and leaves no file.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool is_unix() const { return host.starts_with('@'); }
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// "127.0.0.1:29500", "[::1]:29500", "unix:@name"
std::string to_string(const Endpoint& endpoint);

/// Whether every address of the host is a loopback address (or it is a unix socket).
bool is_loopback(const Endpoint& endpoint);

struct Listener {
  FileDescriptor socket;
  Endpoint endpoint;  ///< with the port the kernel chose, if 0 was asked for
};

/// Binds and listens. Throws UsageError that names the address, and says so if the port is taken.
Listener listen_on(const Endpoint& endpoint, int backlog = 128);

/// A connection waiting at the listener, or an empty descriptor if there is none (or no descriptor
/// left for it).
FileDescriptor accept_from(const FileDescriptor& listener);

/// Connects, trying every address of the host again until the deadline: the listener may not be up
/// yet. Throws RankLostError with the address and the last reason.
FileDescriptor connect_to(const Endpoint& endpoint, Deadline deadline);

/// Returns once poll() reports one of the events, or an error that the next call on the socket will
/// name. Throws RankLostError as send_all.
void wait_for(int socket, short events, Deadline deadline, const std::string& what);

/// Sends or receives exactly these bytes. Throws RankLostError when the peer closes, the connection
/// fails or the deadline passes; `what` ("the store at 127.0.0.1:29500") begins its message.
void send_all(int socket, std::span<const std::byte> bytes, Deadline deadline,
              const std::string& what);
void receive_all(int socket, std::span<std::byte> bytes, Deadline deadline,
                 const std::string& what);

}  // namespace collar::comm
