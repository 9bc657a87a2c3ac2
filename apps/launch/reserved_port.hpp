// SPDX-License-Identifier: Apache-2.0
// A TCP port on 127.0.0.1 that stays free for one job. The launcher keeps a bound socket that never
// listens: the kernel hands the port to nobody else, while a server that sets SO_REUSEADDR (as
// rendezvous servers do, torch's among them) can still bind it and listen. So there is no moment in
// which the port belongs to no one.
#pragma once

#include "engine/io/file_descriptor.hpp"

namespace collar::apps {

class ReservedPort {
 public:
  /// Takes a port of the kernel's choice. Throws DeviceError if there is none.
  ReservedPort();

  int port() const { return port_; }

 private:
  FileDescriptor socket_;
  int port_ = 0;
};

}  // namespace collar::apps
