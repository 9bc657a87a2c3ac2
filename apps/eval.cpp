// SPDX-License-Identifier: Apache-2.0
// `collar eval`: how good a trained model is on a folder of photos.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/accelerate/evaluation.hpp"
#include "apps/accelerate/json_text.hpp"
#include "apps/counted.hpp"
#include "apps/saved_model.hpp"
#include "apps/toml.hpp"
#include "apps/train/options.hpp"
#include "apps/train/recipe.hpp"
#include "apps/verbs.hpp"
#include "data/data.hpp"

namespace collar::apps {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string model;
  std::string data;
  int batch_size = 32;
  int workers = 2;
  int threads = 0;
  bool all = false;
  bool json = false;
};

// Which photos of this folder a run has kept apart, if it was made on this folder.
std::optional<std::uint64_t> split_seed(const fs::path& model, const fs::path& folder) {
  std::error_code ignored;
  const fs::path run = fs::is_directory(model, ignored) ? model : model.parent_path();
  if (!fs::exists(run / "config.toml", ignored)) return std::nullopt;
  TrainOptions options;
  for (const TomlEntry& entry : read_toml(run / "config.toml"))
    set_option(options, entry.key, entry.value, (run / "config.toml").native());
  if (!fs::equivalent(options.data, folder, ignored)) return std::nullopt;
  return options.seed;
}

// The photos to validate of a folder that has some, or that the run has kept some of; otherwise all
// of it. With the classes of the model.
data::LabelledFiles photos_to_judge(const Options& options,
                                    const std::vector<std::string>& classes) {
  const fs::path folder = options.data;
  if (const auto valid = data::validation_folder(folder))
    return data::with_classes(data::scan_folder(*valid), classes);
  data::LabelledFiles files = data::open_folder(folder).train;
  const auto seed = split_seed(options.model, folder);
  if (!options.all && seed) files = split_for_validation(files, *seed).second;
  return data::with_classes(std::move(files), classes);
}

ExitCode run(const Options& options) {
  TrainedModel trained = load_trained_model(options.model);
  const data::ImageFiles photos(photos_to_judge(options, class_names(trained.config)),
                                trained.preprocessing.eval());
  AcceleratorOptions accelerator_options;
  accelerator_options.threads = options.threads;
  Accelerator accelerator(accelerator_options);
  data::DataLoader loader(photos, {.batch_size = options.batch_size, .workers = options.workers});
  trained.model->freeze();
  accelerator.prepare(*trained.model, loader);
  const Evaluation result = evaluate(accelerator, *trained.model, loader);
  if (!accelerator.is_main_process()) return ExitCode::done;
  if (options.json) {
    const nlohmann::ordered_json json{{"photos", result.accuracy.samples},
                                      {"loss", result.loss},
                                      {"top1", result.accuracy.top1()},
                                      {"top5", result.accuracy.top5()}};
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{} of {}: loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %\n",
               counted(result.accuracy.samples, "photo"),
               counted(std::ssize(photos.classes()), "class"), result.loss, result.accuracy.top1(),
               result.accuracy.top5());
  }
  return ExitCode::done;
}

}  // namespace

Verb add_eval(CLI::App& program) {
  CLI::App* command = add_command(program, "eval", "Measure a trained model on a folder of photos");
  const auto options = std::make_shared<Options>();
  command
      ->add_option("MODEL", options->model,
                   "A run's folder, or any with model.safetensors and config.json")
      ->required();
  command
      ->add_option("DATA", options->data,
                   "The photos: the validation part of a folder, or a folder of classes")
      ->required();
  command->add_option("-b,--batch-size", options->batch_size, "Photos at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 65536).description(""))
      ->capture_default_str();
  command->add_option("-j,--workers", options->workers, "Threads that load photos")
      ->type_name("N")
      ->check(CLI::Range(0, 256).description(""))
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Threads that compute; 0: this process's share of the CPUs")
      ->type_name("N")
      ->check(CLI::Range(0, 1024).description(""))
      ->capture_default_str();
  command->add_flag("--all", options->all,
                    "All photos of a folder without a validation part; otherwise only those that "
                    "a run on this folder has kept for validation");
  command->add_flag("--json", options->json, "One line of JSON");
  command->footer("Photos are prepared as in training. Runs under `collar launch -n N` too.");
  return {command, [options] { return run(*options); }};
}

}  // namespace collar::apps
