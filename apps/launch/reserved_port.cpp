// SPDX-License-Identifier: Apache-2.0
#include "apps/launch/reserved_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "kernels/core/error.hpp"

namespace collar::apps {

ReservedPort::ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int yes = 1;
  if (!socket_ || setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(socket_.get(), generic, size) != 0 || getsockname(socket_.get(), generic, &size) != 0) {
    throw DeviceError("launch: no free port on 127.0.0.1: " + system_error_text(errno));
  }
  port_ = ntohs(address.sin_port);
}

}  // namespace collar::apps
