// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace collar::test {

std::optional<std::filesystem::path> shared_dir() {
  std::error_code ignored;
  if (const char* named = std::getenv("COLLAR_SHARED"); named != nullptr && *named != '\0') {
    if (std::filesystem::is_directory(named, ignored)) return named;
    return std::nullopt;
  }
  // Tests run somewhere below the checkout; the data lie beside it.
  for (auto folder = std::filesystem::current_path(ignored); folder != folder.root_path();
       folder = folder.parent_path()) {
    if (std::filesystem::exists(folder / "CMakePresets.json", ignored)) {
      const auto candidate = folder.parent_path() / "shared";
      if (std::filesystem::is_directory(candidate, ignored)) return candidate;
    }
  }
  return std::nullopt;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return nlohmann::json::parse(file);
}

std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_discarded()) lines.push_back(std::move(json));
  }
  return lines;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "collar-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace collar::test
