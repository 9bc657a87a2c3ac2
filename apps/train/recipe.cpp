// SPDX-License-Identifier: Apache-2.0
#include "apps/train/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "kernels/core/error.hpp"
#include "kernels/core/rounding.hpp"

namespace collar::apps {
namespace {

constexpr double kValidationShare = 0.2;

std::array<double, 3> three(const std::vector<double>& values,
                            const std::array<double, 3>& otherwise) {
  if (values.empty()) return otherwise;
  return {values.at(0), values.at(1), values.at(2)};
}

std::string how_to_fetch(const nn::ModelInfo& info) {
  if (info.hub_id().empty()) {
    return fmt::format(
        "nobody has published weights for {}; leave --pretrained out, or give --weights FILE",
        info.name);
  }
  return fmt::format(
      "the published weights of {} are not in the local Hugging Face cache. They are "
      "model.safetensors of {} on the Hugging Face hub; fetch them once with\n"
      "  hf download {} model.safetensors\n"
      "and run this again, or give the file itself: --weights model.safetensors",
      info.name, info.hub_id(), info.hub_id());
}

}  // namespace

data::Preprocessing preprocessing_of(const TrainOptions& options) {
  data::Preprocessing p = data::Preprocessing::of(
      data::transform_preset_from_name(options.transform), options.img_size);
  if (options.interpolation == "bilinear") p.interpolation = data::Interpolation::bilinear;
  if (options.interpolation == "bicubic") p.interpolation = data::Interpolation::bicubic;
  if (options.resize_passes == "pillow12") p.pass_order = data::PassOrder::pillow12;
  if (options.crop_pct > 0) p.crop_pct = options.crop_pct;
  if (options.hflip) p.hflip = *options.hflip;
  p.mean = three(options.mean, p.mean);
  p.std = three(options.std, p.std);
  p.validate();
  return p;
}

void resolve_preprocessing(TrainOptions& options) {
  const data::Preprocessing p = preprocessing_of(options);
  options.interpolation = data::name_of(p.interpolation);
  options.crop_pct = p.crop_pct;
  options.hflip = p.hflip;
  options.mean.assign(p.mean.begin(), p.mean.end());
  options.std.assign(p.std.begin(), p.std.end());
}

std::pair<data::LabelledFiles, data::LabelledFiles> split_for_validation(
    const data::LabelledFiles& files, std::uint64_t seed) {
  return data::split_by_class(files, kValidationShare, seed);
}

Photos open_photos(const TrainOptions& options) {
  const data::Preprocessing preprocessing = preprocessing_of(options);
  data::OpenedFolder folder = data::open_folder(options.data);
  const bool split = !folder.valid;
  if (split) {
    auto [rest, taken] = split_for_validation(folder.train, options.seed);
    folder.train = std::move(rest);
    folder.valid = std::move(taken);
  }
  const auto classes = static_cast<int>(folder.train.classes.size());
  if (options.num_classes > 0 && options.num_classes < classes) {
    throw UsageError(fmt::format("--num-classes {}, but {} has {} classes", options.num_classes,
                                 options.data, classes));
  }
  return {preprocessing, data::ImageFiles(std::move(folder.train), preprocessing.train()),
          data::ImageFiles(*std::move(folder.valid), preprocessing.eval()), split};
}

std::optional<std::filesystem::path> cached_weights(const nn::ModelInfo& info) {
  namespace fs = std::filesystem;
  const std::string hub_id = info.hub_id();
  if (hub_id.empty()) return std::nullopt;
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? fs::path() : fs::path(value);
  };
  fs::path hub = variable("HF_HUB_CACHE");
  if (hub.empty() && !variable("HF_HOME").empty()) hub = variable("HF_HOME") / "hub";
  if (hub.empty()) hub = variable("HOME") / ".cache/huggingface/hub";
  std::string folder = "models--" + hub_id;
  folder.replace(folder.find('/'), 1, "--");
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& snapshot : fs::directory_iterator(hub / folder / "snapshots", ignored)) {
    const fs::path file = snapshot.path() / "model.safetensors";
    if (fs::exists(file, ignored)) found.push_back(file);
  }
  if (found.empty()) return std::nullopt;
  return *std::ranges::max_element(
      found, {}, [&](const fs::path& file) { return fs::last_write_time(file, ignored); });
}

StartingPoint make_model(const TrainOptions& options, std::int64_t classes) {
  StartingPoint start;
  start.model = nn::create_model(
      options.model, {.num_classes = static_cast<std::size_t>(classes), .seed = options.seed});
  std::filesystem::path weights = options.weights;
  if (options.pretrained) {
    const nn::ModelInfo& info = nn::model_info(options.model);
    const auto cached = cached_weights(info);
    if (!cached) throw UsageError("--pretrained: " + how_to_fetch(info));
    weights = *cached;
  }
  if (!weights.empty()) {
    const nn::LoadReport report = nn::load_weights(*start.model, weights);
    start.notes.push_back(fmt::format("weights from {}", weights.native()));
    if (!report.dropped.empty()) {
      start.notes.push_back(fmt::format(
          "{} left out: the file has {} classes, this run {}; the classifier starts afresh",
          fmt::join(report.dropped, ", "), report.classes_in_file, classes));
    }
  }
  if (options.freeze == "backbone") {
    start.model->freeze_all_but(start.model->classifier());
    if (weights.empty()) {
      start.notes.push_back(
          "warning: the backbone is frozen at random values; --pretrained or --weights FILE gives "
          "it some that know pictures");
    }
  }
  return start;
}

std::unique_ptr<nn::Optimizer> make_optimizer(const TrainOptions& options,
                                              const nn::Module& model) {
  const nn::Parameters parameters = model.trainable_parameters();
  if (options.opt == "sgd") {
    return std::make_unique<nn::SGD>(parameters,
                                     nn::SGDOptions{.lr = options.lr,
                                                    .momentum = options.momentum,
                                                    .weight_decay = options.weight_decay,
                                                    .nesterov = options.nesterov});
  }
  if (options.opt == "adam") {
    return std::make_unique<nn::Adam>(
        parameters, nn::AdamOptions{.lr = options.lr, .weight_decay = options.weight_decay});
  }
  return std::make_unique<nn::AdamW>(
      parameters, nn::AdamWOptions{.lr = options.lr, .weight_decay = options.weight_decay});
}

int optimizer_states(const TrainOptions& options) {
  if (options.opt != "sgd") return 2;
  return options.momentum > 0 ? 1 : 0;
}

Lengths lengths_of(const TrainOptions& options, std::int64_t samples) {
  data::Sharding sharding{
      .samples = samples, .batch_size = options.batch_size, .ranks = options.logical_ranks()};
  Lengths lengths;
  lengths.batches_per_epoch = sharding.batches(0);
  // The schedule is made, as in accelerate, before the samples are shared out.
  sharding.ranks = 1;
  const std::int64_t batches = sharding.batches(0);
  lengths.steps_per_epoch = ceil_div(lengths.batches_per_epoch, options.grad_accum_steps);
  lengths.total_steps = lengths.steps_per_epoch * options.epochs;
  if (options.max_steps > 0) lengths.total_steps = std::min(lengths.total_steps, options.max_steps);
  lengths.schedule_ticks = ceil_div(batches, options.grad_accum_steps) * options.epochs;
  return lengths;
}

void require_values_to_normalise(const TrainOptions& options, std::int64_t samples) {
  // Several ranks share the photos evenly and fill up their last batch, a single one does not.
  const std::int64_t batch = options.batch_size;
  const std::int64_t smallest = options.logical_ranks() > 1 ? batch : (samples - 1) % batch + 1;
  require_values_to_normalise(
      fmt::format("with {} photos in batches of {} the last batch", samples, batch), smallest,
      options.img_size);
}

void require_values_to_normalise(const std::string& name, std::int64_t photos, int img_size) {
  constexpr int kReduction = 32;  // of height and width, by every ResNet
  if (img_size > kReduction || photos > 1) return;
  throw UsageError(fmt::format(
      "{} is a single photo, and at --img-size {} batch normalisation has one value a channel "
      "then, whose variance is none: choose another --batch-size or a larger --img-size",
      name, img_size));
}

std::unique_ptr<nn::Schedule> make_schedule(const TrainOptions& options, nn::Optimizer& optimizer,
                                            const Lengths& lengths) {
  const std::int64_t warmup = options.warmup_steps;
  const std::int64_t total = lengths.schedule_ticks;
  const std::string& name = options.sched;
  if (name == "cosine" && options.min_lr > 0) {
    return std::make_unique<nn::CosineWithMinRate>(
        optimizer, nn::rate::CosineWithMinRate{
                       .warmup_steps = warmup, .total_steps = total, .min_rate = options.min_lr});
  }
  if (name == "cosine") {
    return std::make_unique<nn::CosineWithWarmup>(
        optimizer, nn::rate::CosineWithWarmup{.warmup_steps = warmup, .total_steps = total});
  }
  if (name == "cosine-restarts") {
    return std::make_unique<nn::CosineHardRestartsWithWarmup>(
        optimizer, nn::rate::CosineHardRestartsWithWarmup{
                       .warmup_steps = warmup, .total_steps = total, .cycles = options.num_cycles});
  }
  if (name == "linear") {
    return std::make_unique<nn::LinearWithWarmup>(
        optimizer, nn::rate::LinearWithWarmup{.warmup_steps = warmup, .total_steps = total});
  }
  if (name == "polynomial") {
    nn::rate::PolynomialWithWarmup formula{.warmup_steps = warmup, .total_steps = total};
    if (options.min_lr > 0) formula.end_rate = options.min_lr;
    return std::make_unique<nn::PolynomialWithWarmup>(optimizer, formula);
  }
  if (name == "inverse-sqrt") {
    return std::make_unique<nn::InverseSqrt>(optimizer,
                                             nn::rate::InverseSqrt{.warmup_steps = warmup});
  }
  if (name == "onecycle") {
    return std::make_unique<nn::OneCycleLR>(optimizer, nn::OneCycleOptions{.total_steps = total});
  }
  if (name == "multistep") {
    nn::rate::MultiStepLR formula{.gamma = options.decay_rate};
    for (const double step : options.decay_milestones) {
      formula.milestones.push_back(static_cast<std::int64_t>(step) * options.logical_ranks());
    }
    return std::make_unique<nn::MultiStepLR>(optimizer, formula);
  }
  return std::make_unique<nn::ConstantWithWarmup>(
      optimizer, nn::rate::ConstantWithWarmup{.warmup_steps = warmup});
}

AcceleratorOptions accelerator_options(const TrainOptions& options) {
  AcceleratorOptions result;
  result.precision = options.precision == "bf16" ? Precision::bf16 : Precision::f32;
  result.gradient_accumulation_steps = options.grad_accum_steps;
  result.virtual_ranks = options.virtual_ranks;
  result.threads = options.threads;
  result.bucket_bytes = static_cast<std::size_t>(options.bucket_cap_mb * 1024 * 1024);
  result.first_bucket_bytes = std::min(result.first_bucket_bytes, result.bucket_bytes);
  result.communicator.host.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1000));
  // Whatever COLLAR_ALGO says: it would change results without a trace in config.toml.
  result.communicator.host.algorithms = comm::AlgorithmTable("all_reduce=" + options.all_reduce);
  return result;
}

nn::ModelConfig model_config(const TrainOptions& options, const nn::ResNet& model,
                             const std::vector<std::string>& classes,
                             const data::Preprocessing& preprocessing) {
  const nn::ModelInfo& info = nn::model_info(options.model);
  nn::ModelConfig config;
  config.architecture = info.name;
  config.num_classes = model.num_classes();
  config.num_features = model.num_features();
  config.label_names = classes;
  while (static_cast<std::int64_t>(config.label_names.size()) < model.num_classes())
    config.label_names.push_back(fmt::format("class {}", config.label_names.size()));
  config.pretrained = info.pretrained;
  config.pretrained.tag = "";
  config.pretrained.num_classes = model.num_classes();
  config.pretrained.input_size = {3, preprocessing.size, preprocessing.size};
  config.pretrained.test_input_size = config.pretrained.input_size;
  config.pretrained.interpolation = std::string(data::name_of(preprocessing.interpolation));
  config.pretrained.crop_pct = preprocessing.crop_pct;
  config.pretrained.test_crop_pct = preprocessing.crop_pct;
  config.pretrained.crop_mode =
      preprocessing.transform == data::TransformPreset::article ? "squash" : "center";
  config.pretrained.mean = preprocessing.mean;
  config.pretrained.std = preprocessing.std;
  return config;
}

}  // namespace collar::apps
