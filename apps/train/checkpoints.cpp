// SPDX-License-Identifier: Apache-2.0
#include "apps/train/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/accelerate/json_text.hpp"
#include "kernels/core/error.hpp"
#include "nn/weights.hpp"

namespace collar::apps {
namespace {

constexpr const char* kKind = "collar training run";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".collar";

// Doubles as bits, so that a rate comes back exactly and infinities come back at all.
nlohmann::json to_json(const nn::ScheduleState& state) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, values] : state) {
    nlohmann::json bits = nlohmann::json::array();
    for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
    json[name] = bits;
  }
  return json;
}

nn::ScheduleState schedule_state(const nlohmann::json& json) {
  nn::ScheduleState state;
  for (const auto& [name, bits] : json.items()) {
    for (const nlohmann::json& value : bits) {
      state[name].push_back(std::bit_cast<double>(value.get<std::uint64_t>()));
    }
  }
  return state;
}

nn::Parameters section(const CheckpointFile& file, const std::string& name) {
  nn::Parameters parameters;
  for (const CheckpointEntry& entry : file.entries()) {
    if (entry.section == name) parameters.push_back({entry.name, file.tensor(name, entry.name)});
  }
  return parameters;
}

// The checkpoints of a folder, newest first. Throws FileError if it cannot be read.
std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& folder) {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw FileError(
        fmt::format("{}: cannot look for checkpoints there: {}", folder.native(), error.message()));
  }
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().native();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const char* begin = name.data() + kPrefix.size();
    const char* end = name.data() + name.size() - kSuffix.size();
    std::int64_t step = 0;
    const auto parsed = std::from_chars(begin, end, step);
    const bool is_ours = parsed.ec == std::errc() && parsed.ptr == end &&
                         name == checkpoint_path({}, step).native();  // no 0007
    if (is_ours) found.emplace_back(step, entry.path());
  }
  std::ranges::sort(found, std::greater<>());
  return found;
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Trained& trained,
                     const CheckpointInfo& info) {
  std::vector<CheckpointTensor> tensors;
  for (const nn::Parameter& parameter : trained.model.state_dict()) {
    tensors.push_back({"model", parameter.name, parameter.tensor});
  }
  for (const nn::Parameter& state : trained.optimizer.state()) {
    tensors.push_back({"optimizer", state.name, state.tensor});
  }
  nlohmann::json state = info.description;
  state["kind"] = kKind;
  state["step"] = info.position.step;
  state["epoch"] = info.position.epoch;
  state["batch"] = info.position.batch;
  state["loss_sum"] = info.position.loss_sum;
  state["best_top1"] = info.position.best_top1;
  state["best_epoch"] = info.position.best_epoch;
  state["finished"] = info.position.finished;
  state["photos"] = info.photos;
  state["schedule"] = to_json(trained.schedule.state());
  state["config"] = info.config;
  // Bytes of a path that are no UTF-8 are replaced.
  write_checkpoint(path, tensors, nlohmann::json::parse(json_text(state)));
}

CheckpointInfo read_checkpoint_info(const CheckpointFile& file) {
  CheckpointInfo info;
  info.description = file.state();
  try {
    const nlohmann::json& state = info.description;
    if (state.at("kind") != kKind) throw FileError("it is not one of a training run");
    info.position = {.step = state.at("step"),
                     .epoch = state.at("epoch"),
                     .batch = state.at("batch"),
                     .loss_sum = state.at("loss_sum"),
                     .best_top1 = state.at("best_top1"),
                     .best_epoch = state.at("best_epoch"),
                     .finished = state.at("finished")};
    info.photos = state.at("photos");
    info.config = state.at("config");
  } catch (const std::exception& error) {
    throw FileError(fmt::format("{}: not a checkpoint that training can go on from: {}",
                                file.path().native(), error.what()));
  }
  return info;
}

void restore_checkpoint(const CheckpointFile& file, const Trained& trained) {
  const auto fail = [&file](const std::exception& error) {
    throw FileError(fmt::format("{}: the run cannot go on from this checkpoint: {}",
                                file.path().native(), error.what()));
  };
  try {
    const nn::LoadReport report = nn::load_state(trained.model, section(file, "model"));
    if (!report.dropped.empty()) {
      throw FileError(fmt::format("{} is for {} classes, the model has others",
                                  fmt::join(report.dropped, ", "), report.classes_in_file));
    }
    trained.optimizer.load_state(section(file, "optimizer"));
    trained.schedule.load_state(schedule_state(file.state().at("schedule")));
  } catch (const Error& error) {
    fail(error);
  } catch (const nlohmann::json::exception& error) {
    fail(error);
  }
}

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{}{}", kPrefix, step, kSuffix);
}

std::optional<CheckpointFile> newest_checkpoint(
    const std::filesystem::path& folder, const std::function<void(const std::string&)>& warn) {
  for (const auto& [step, path] : checkpoints_in(folder)) {
    try {
      CheckpointFile file = CheckpointFile::open(path);
      file.verify();
      return file;
    } catch (const FileError& error) {
      warn(fmt::format("passed over a damaged checkpoint: {}", error.what()));
    }
  }
  return std::nullopt;
}

std::filesystem::path set_aside_later(const std::filesystem::path& folder, std::int64_t step) {
  const std::filesystem::path aside = folder / "superseded";
  std::filesystem::path used;
  std::error_code error;
  for (const auto& [later, path] : checkpoints_in(folder)) {
    if (later <= step) break;
    std::filesystem::create_directory(aside, error);
    std::filesystem::rename(path, aside / path.filename(), error);
    if (error) {
      throw FileError(fmt::format("{}: cannot move it to {}: {}", path.native(), aside.native(),
                                  error.message()));
    }
    used = aside;
  }
  return used;
}

bool holds_checkpoints(const std::filesystem::path& folder) {
  return !checkpoints_in(folder).empty();
}

void prune_checkpoints(const std::filesystem::path& folder, int keep) {
  const auto all = checkpoints_in(folder);
  std::error_code ignored;
  for (std::size_t i = static_cast<std::size_t>(keep); i < all.size(); ++i) {
    std::filesystem::remove(all[i].second, ignored);
  }
}

}  // namespace collar::apps
