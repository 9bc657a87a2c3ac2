// SPDX-License-Identifier: Apache-2.0
// Training runs of a moment, made by the program: a few drawn photos, a small network, a handful of
// steps; and what such a run leaves behind.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/synth/pet_folder.hpp"
#include "tests/apps/support/program.hpp"

namespace collar::test {

class SmallRuns {
 public:
  explicit SmallRuns(const apps::synth::PetFolderOptions& photos = {
                         .classes = 3, .train = 14, .valid = 3, .seed = 1}) {
    apps::synth::write_pet_folder(this->photos(), photos);
    write_text(config(),
               "model = \"resnet18d\"\n"
               "img-size = 32\n"
               "batch-size = 4\n"
               "epochs = 1\n"
               "lr = 1e-3\n"
               "warmup-steps = 2\n"
               "threads = 1\n"
               "workers = 1\n"
               "log-interval = 1\n"
               "save-every = \"never\"\n");
  }

  std::filesystem::path photos() const { return folder_.path() / "photos"; }
  std::filesystem::path run(const std::string& name) const { return folder_.path() / name; }

  /// The arguments that make the run of this name.
  std::vector<std::string> arguments(const std::string& name,
                                     const std::vector<std::string>& options) const {
    std::vector<std::string> words{"train", photos(), "--config", config(), "-o", run(name)};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  Finished train(const std::string& name, const std::vector<std::string>& options = {},
                 const apps::Variables& variables = {}) const {
    return run_collar(arguments(name, options), variables);
  }
  /// The same, begun and not waited for.
  std::vector<std::string> command(const std::string& name,
                                   const std::vector<std::string>& options) const {
    std::vector<std::string> words = arguments(name, options);
    words.insert(words.begin(), COLLAR_PROGRAM);
    return words;
  }

  /// The same, which has to succeed.
  void must_train(const std::string& name, const std::vector<std::string>& options = {}) const {
    const Finished finished = train(name, options);
    INFO(name << ": " << finished.err);
    REQUIRE(finished.code == 0);
  }

  /// The bytes of the trained model. Compare them with same().
  std::string model(const std::string& name) const {
    return read_text(run(name) / "model.safetensors");
  }
  /// The lines of metrics.jsonl, but for what a clock measured.
  std::vector<nlohmann::json> metrics(const std::string& name) const {
    std::vector<nlohmann::json> lines = read_json_lines(run(name) / "metrics.jsonl");
    for (nlohmann::json& line : lines) {
      for (const char* clocked : {"images_per_second", "data_wait", "seconds"}) line.erase(clocked);
    }
    return lines;
  }
  /// The last step that was logged; 0 before the first.
  std::int64_t steps_logged(const std::string& name) const {
    const auto lines = metrics(name);
    return lines.empty() ? 0 : lines.back().at("step").get<std::int64_t>();
  }
  std::filesystem::path checkpoint(const std::string& name, int step) const {
    return run(name) / "checkpoints" / ("step-" + std::to_string(step) + ".collar");
  }
  /// When each file of a run was last written.
  std::map<std::string, std::filesystem::file_time_type> times(const std::string& name) const {
    std::map<std::string, std::filesystem::file_time_type> times;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run(name)))
      times[entry.path()] = entry.last_write_time();
    return times;
  }

 private:
  std::filesystem::path config() const { return folder_.path() / "common.toml"; }

  TemporaryDirectory folder_;
};

/// Comparing two models with == inside CHECK would print 45 MB.
inline bool same(const std::string& a, const std::string& b) {
  return !a.empty() && a == b;
}

inline std::vector<std::string> operator+(std::vector<std::string> a,
                                          const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The processes that a launcher runs as ranks, by their numbers.
inline std::map<int, pid_t> ranks_of(pid_t launcher) {
  std::map<int, pid_t> ranks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string status = read_text(entry.path() / "stat");
    const auto end_of_name = status.rfind(") ");
    if (end_of_name == std::string::npos) continue;
    if (std::stol(status.substr(end_of_name + 4)) != launcher) continue;
    const std::string variables = '\0' + read_text(entry.path() / "environ");
    const auto at = variables.find(std::string("\0RANK=", 6));
    if (at != std::string::npos) ranks[std::stoi(variables.substr(at + 6))] = std::stoi(pid);
  }
  return ranks;
}

}  // namespace collar::test
