// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: for tests, and for a job of one rank.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/fabric.hpp"

namespace collar::comm {

/// The fabrics of n ranks, by rank; each is handed to the thread that plays it.
std::vector<std::unique_ptr<Fabric>> make_thread_fabrics(int size);

}  // namespace collar::comm
