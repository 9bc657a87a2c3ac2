// SPDX-License-Identifier: Apache-2.0
// Where the golden values and photos are that lie beside the project, and how a test says that it
// was skipped.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace collar::test {

/// The folder of shared test data: $COLLAR_SHARED, or `shared` beside the checkout. Empty if
/// neither exists.
std::optional<std::filesystem::path> shared_dir();

/// Parses a JSON file. Throws if it cannot be read.
nlohmann::json read_json(const std::filesystem::path& path);

/// The lines of a file of one JSON value a line; a last line that is still being written is left
/// out.
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path);

/// A fresh empty folder, removed with everything in it at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace collar::test

/// Leaves the test case, counted as skipped.
#define COLLAR_SKIP(reason)                        \
  do {                                             \
    std::printf("COLLAR_SKIPPED: %s\n", (reason)); \
    SUCCEED("skipped");                            \
    return;                                        \
  } while (false)

/// Declares `name` as the path of `relative` inside the shared folder, or skips the test case.
#define REQUIRE_SHARED(name, relative)                                                   \
  const auto name##_root = collar::test::shared_dir();                                   \
  if (!name##_root || !std::filesystem::exists(*name##_root / (relative)))               \
    COLLAR_SKIP("../shared/" relative " is not here (set COLLAR_SHARED to its folder)"); \
  const std::filesystem::path name = *name##_root / (relative)
