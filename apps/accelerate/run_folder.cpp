// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <span>
#include <system_error>
#include <thread>

#include "apps/accelerate/json_text.hpp"
#include "comm/rendezvous/deadline.hpp"
#include "engine/io/durable_file.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// For the ranks of a job that has just been killed to be gone.
constexpr std::chrono::seconds kPatience{5};
constexpr const char* kSummaryHeader =
    "epoch,step,train_loss,valid_loss,top1,top5,lr,images_per_second,seconds\n";

ordered_json optional_number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

std::string csv_cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

/// Where a run was when it wrote a line.
struct LinePlace {
  std::int64_t step = 0;
  std::int64_t epoch = -1;  ///< that had ended; -1 for lines about a step
};

/// Of a line of metrics.jsonl; nothing if the line is not whole.
std::optional<LinePlace> place_in_metrics(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto has_integer = [&](const char* key) {
    return json.contains(key) && json[key].is_number_integer();
  };
  if (!json.is_object() || !has_integer("step") || !has_integer("epoch")) return std::nullopt;
  return LinePlace{json["step"], json.contains("train_loss") ? json["epoch"].get<int>() : -1};
}

/// Of a row of summary.csv.
std::optional<LinePlace> place_in_summary(const std::string& line) {
  if (line + "\n" == kSummaryHeader) return LinePlace{};
  LinePlace place;
  int end = 0;
  if (std::sscanf(line.c_str(), "%" SCNd64 ",%" SCNd64 ",%n", &place.epoch, &place.step, &end) !=
          2 ||
      end == 0) {
    return std::nullopt;
  }
  return place;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("cannot make {}: {}", folder.string(), error.message()));
}

/// The folder, open and locked as long as the descriptor lives: the kernel unlocks it whatever
/// becomes of this process. Where the file system has no locks, it is not locked.
FileDescriptor locked(const fs::path& folder) {
  FileDescriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto deadline = comm::Deadline::after(kPatience);
  while (descriptor && flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    if (deadline.passed()) {
      throw UsageError(
          fmt::format("another process is training in {}: wait until it has ended, or choose "
                      "another folder with -o",
                      folder.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return descriptor;
}

/// Returns where it is now.
fs::path move_aside(const fs::path& folder) {
  std::error_code error;
  for (int number = 1; number < 10'000; ++number) {
    const fs::path target = folder.string() + "." + std::to_string(number);
    if (fs::exists(target, error)) continue;
    fs::rename(folder, target, error);
    if (!error) return target;
    throw UsageError(
        fmt::format("cannot move {} to {}: {}", folder.string(), target.string(), error.message()));
  }
  throw UsageError(fmt::format("cannot move {} aside: too many earlier runs", folder.string()));
}

}  // namespace

ordered_json to_json(const StepMetrics& metrics) {
  return {{"step", metrics.step},
          {"epoch", metrics.epoch},
          {"loss", metrics.loss},
          {"lr", metrics.lr},
          {"images_per_second", metrics.images_per_second},
          {"data_wait", metrics.data_wait},
          {"grad_norm", optional_number(metrics.grad_norm)}};
}

ordered_json to_json(const EpochMetrics& metrics) {
  return {{"epoch", metrics.epoch},
          {"step", metrics.step},
          {"train_loss", metrics.train_loss},
          {"valid_loss", optional_number(metrics.valid_loss)},
          {"top1", optional_number(metrics.top1)},
          {"top5", optional_number(metrics.top5)},
          {"lr", metrics.lr},
          {"images_per_second", metrics.images_per_second},
          {"seconds", metrics.seconds}};
}

bool RunFolder::holds_run(const fs::path& folder) {
  std::error_code ignored;
  const fs::directory_iterator checkpoints(folder / "checkpoints", ignored);
  return checkpoints != fs::directory_iterator() ||
         fs::exists(folder / "model.safetensors", ignored) ||
         fs::exists(folder / "metrics.jsonl", ignored);
}

RunFolder::RunFolder(fs::path folder, Start start, Warn warn)
    : folder_(std::move(folder)), warn_(std::move(warn)) {
  while (!folder_.has_filename() && folder_.has_parent_path()) folder_ = folder_.parent_path();
  make_folder(folder_);
  lock_ = locked(folder_);
  if (start != Start::continued && holds_run(folder_)) {
    if (start == Start::fresh) {
      throw UsageError(fmt::format(
          "{} holds a run already: go on with --resume auto, choose another folder with -o, or add "
          "--force to move that run aside and start over",
          folder_.string()));
    }
    const fs::path aside = move_aside(folder_);
    if (warn_)
      warn_(fmt::format("the run that was in {} is in {} now", folder_.string(), aside.string()));
    make_folder(folder_);
    lock_ = locked(folder_);
  }
  make_folder(checkpoints());
  make_folder(logs());
  for (const fs::path& place : {folder_, checkpoints()}) remove_temporaries(place);
}

void RunFolder::warn_of_shortage(std::uint64_t bytes) const {
  std::error_code error;
  const fs::space_info space = fs::space(folder_, error);
  if (error || space.available >= bytes || !warn_) return;
  warn_(fmt::format("{} has {:.0f} MB free, a checkpoint and the model need {:.0f} MB",
                    folder_.string(), static_cast<double>(space.available) * 1e-6,
                    static_cast<double>(bytes) * 1e-6));
}

void RunFolder::write_config(const std::string& toml) const {
  write_durably(config(), std::as_bytes(std::span(toml)));
}

void RunFolder::truncate_after(std::int64_t step, std::int64_t epoch) {
  using PlaceOf = std::optional<LinePlace> (*)(const std::string&);
  for (const auto& [path, place_of] : {std::pair<fs::path, PlaceOf>{metrics(), place_in_metrics},
                                       std::pair<fs::path, PlaceOf>{summary(), place_in_summary}}) {
    std::ifstream in(path, std::ios::binary);
    if (!in) continue;
    std::string kept;
    for (std::string line; std::getline(in, line);) {
      const auto place = place_of(line);
      const bool whole = !in.eof();
      if (whole && place && place->step <= step && place->epoch < epoch) kept += line + '\n';
    }
    try {
      write_durably(path, std::as_bytes(std::span(kept)));
    } catch (const FileError& error) {
      failed(path, error.what());
    }
  }
}

void RunFolder::log(const StepMetrics& values) {
  append(metrics(), json_text(to_json(values)) + "\n");
}

void RunFolder::log(const EpochMetrics& values) {
  append(metrics(), json_text(to_json(values)) + "\n");
  std::error_code ignored;
  if (!fs::exists(summary(), ignored)) append(summary(), kSummaryHeader);
  append(summary(),
         fmt::format("{},{},{},{},{},{},{},{},{}\n", values.epoch, values.step, values.train_loss,
                     csv_cell(values.valid_loss), csv_cell(values.top1), csv_cell(values.top5),
                     values.lr, values.images_per_second, values.seconds));
}

void RunFolder::append(const fs::path& file, const std::string& line) {
  // Opened for each line, so that logging goes on once a moved file or a full disk is put right;
  // and one write of one line leaves no half line of a process that is killed.
  const FileDescriptor target(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const ssize_t written = target ? write(target.get(), line.data(), line.size()) : -1;
  if (written < 0) return failed(file, system_error_text(errno));
  if (static_cast<std::size_t>(written) < line.size()) failed(file, "the disk is full");
}

void RunFolder::failed(const fs::path& file, const std::string& reason) {
  if (failures_++ == 0 && warn_) {
    warn_(fmt::format("cannot write {}: {} (training goes on; further lines may be missing)",
                      file.string(), reason));
  }
}

}  // namespace collar::apps
