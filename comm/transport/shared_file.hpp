// SPDX-License-Identifier: Apache-2.0
// Anonymous files of shared memory, and the passing of descriptors over unix sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/rendezvous/deadline.hpp"
#include "engine/io/file_descriptor.hpp"

namespace collar::comm {

/// A sealed, zeroed memfd whose pages are already there, so that no later access can fail. Throws
/// DeviceError with the sizes where there is not enough memory.
FileDescriptor make_shared_file(std::size_t bytes);

/// Maps a whole file of make_shared_file, also a peer's. Throws DeviceError if its size is another.
std::shared_ptr<std::byte> map_shared_file(const FileDescriptor& file, std::size_t bytes);

/// What peers tell each other when memory is shared: a descriptor, or why there is none.
struct ShareNotice {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
};

/// An empty descriptor sends none. Throw RankLostError; `what` begins the message.
void send_descriptor(int socket, const ShareNotice& notice, const FileDescriptor& file,
                     Deadline deadline, const std::string& what);
FileDescriptor receive_descriptor(int socket, ShareNotice& notice, Deadline deadline,
                                  const std::string& what);

}  // namespace collar::comm
