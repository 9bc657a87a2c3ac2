// SPDX-License-Identifier: Apache-2.0
// What this program was built from and with. The values are written by CMake.
#pragma once

#include <string_view>

namespace collar::apps {

struct BuildInfo {
  std::string_view version;     ///< "0.1.0"
  std::string_view revision;    ///< the git commit, "-dirty" if files had changed, or "unknown"
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view build_type;  ///< "Release"
  std::string_view sanitizers;  ///< "" or "address,undefined"
  std::string_view openmp;      ///< "on", or "off: " and why
  std::string_view onednn;      ///< "on: 2.6.3", or "off: " and why
  std::string_view cuda;        ///< "off: " and why
};

BuildInfo build_info();

}  // namespace collar::apps
