// SPDX-License-Identifier: Apache-2.0
#include "apps/train/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "apps/build_info.hpp"
#include "apps/nearest.hpp"
#include "apps/toml.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
T number_between(const std::string& text, T least, T most) {
  const auto value = parse_number<T>(text);
  if (!value || !(*value >= least && *value <= most)) {
    const char* kind = std::is_integral_v<T> ? "whole number" : "number";
    if (most == std::numeric_limits<T>::max()) {
      throw UsageError(fmt::format("expected a {} of at least {}, got \"{}\"", kind, least, text));
    }
    throw UsageError(
        fmt::format("expected a {} from {} to {}, got \"{}\"", kind, least, most, text));
  }
  return *value;
}

std::vector<double> parse_list(const std::string& text) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto value = parse_number<double>(std::string_view(text).substr(begin, end - begin));
    if (!value) throw UsageError(fmt::format("expected numbers, got \"{}\"", text));
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

std::string key_of(const std::string& flags) {
  const auto dashes = flags.find("--");
  if (dashes == std::string::npos) return "data";
  return flags.substr(dashes + 2, flags.find(',', dashes) - dashes - 2);
}

/// Fills the table; the functions are named after the kind of value.
class TableBuilder {
 public:
  void group(std::string name) { group_ = std::move(name); }

  template <class T>
  void number(const char* flags, T TrainOptions::*field, T least, T most, const char* help,
              Effect effect = Effect::results) {
    add(
        flags, std::is_integral_v<T> ? "N" : "X", help, effect, false,
        [field](const TrainOptions& options) { return fmt::format("{}", options.*field); },
        [=](TrainOptions& options, const std::string& text) {
          options.*field = number_between<T>(text, least, most);
        });
  }
  void number_or_auto(const char* flags, std::optional<double> TrainOptions::*field, double least,
                      double most, const char* help) {
    add(
        flags, "X", help, Effect::results, false,
        [field](const TrainOptions& options) {
          return options.*field ? fmt::format("{}", *(options.*field)) : "auto";
        },
        [=](TrainOptions& options, const std::string& text) {
          options.*field = text == "auto"
                               ? std::nullopt
                               : std::optional(number_between<double>(text, least, most));
        });
  }
  void choice(const char* flags, std::string TrainOptions::*field,
              const std::vector<std::string>& allowed, const char* help,
              Effect effect = Effect::results) {
    const std::string names = fmt::format("{}", fmt::join(allowed, ", "));
    add(
        flags, "NAME", std::string(help) + ": " + names, effect, true,
        [field](const TrainOptions& options) { return options.*field; },
        [=](TrainOptions& options, const std::string& text) {
          if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
            throw UsageError(fmt::format("expected one of {}, got \"{}\"{}", names, text,
                                         did_you_mean(text, allowed)));
          }
          options.*field = text;
        });
  }
  void text(const char* flags, std::string TrainOptions::*field, const char* placeholder,
            const char* help, Effect effect = Effect::results) {
    add(
        flags, placeholder, help, effect, true,
        [field](const TrainOptions& options) { return options.*field; },
        [field](TrainOptions& options, const std::string& text) { options.*field = text; });
  }
  void list(const char* flags, std::vector<double> TrainOptions::*field, std::size_t size,
            const char* help) {
    add(
        flags, "X,X,…", help, Effect::results, false,
        [field](const TrainOptions& options) {
          return fmt::format("{}", fmt::join(options.*field, ","));
        },
        [=](TrainOptions& options, const std::string& text) {
          std::vector<double> values = parse_list(text);
          if (size > 0 && !values.empty() && values.size() != size) {
            throw UsageError(fmt::format("expected {} numbers, got \"{}\"", size, text));
          }
          options.*field = std::move(values);
        });
    table_.back().list = true;
  }
  void flag(const char* flags, bool TrainOptions::*field, const char* help, Effect effect) {
    add(
        flags, "", help, effect, false,
        [field](const TrainOptions& options) { return options.*field ? "true" : "false"; },
        [field](TrainOptions& options, const std::string& text) {
          if (text != "true" && text != "false" && text != "1" && text != "0") {
            throw UsageError(fmt::format("expected true or false, got \"{}\"", text));
          }
          options.*field = text == "true" || text == "1";
        });
  }
  void add(const char* flags, std::string placeholder, std::string help, Effect effect, bool quoted,
           std::function<std::string(const TrainOptions&)> get,
           std::function<void(TrainOptions&, const std::string&)> set) {
    table_.push_back({flags, key_of(flags), group_, std::move(placeholder), std::move(help), effect,
                      quoted, false, std::move(get), std::move(set)});
  }

  std::vector<OptionSpec> take() { return std::move(table_); }

 private:
  std::string group_;
  std::vector<OptionSpec> table_;
};

constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMostLong = std::numeric_limits<std::int64_t>::max();

void add_data_options(TableBuilder& table) {
  using O = TrainOptions;
  table.group("Data");
  table.text("DATA", &O::data, "DIR",
             "The photos: DIR/train/CLASS/… and DIR/valid/CLASS/…, or a folder of classes, or the "
             "images/ folder of Oxford-IIIT Pet",
             Effect::pace);
  table.number("--img-size", &O::img_size, 8, 4096, "Height and width of what the model sees");
  table.number("-b,--batch-size", &O::batch_size, 1, 65536, "Images in one step of one rank");
  table.number("--num-classes", &O::num_classes, 0, 1'000'000,
               "Classes of the model; 0: as many as DATA has");
  table.choice("--transform", &O::transform, {"article", "timm", "none"},
               "Preprocessing (article: bilinear resize, no normalisation; timm: bicubic, centre "
               "crop, mean and std of ImageNet)");
  table.list("--mean", &O::mean, 3, "Normalisation, in place of the transform's");
  table.list("--std", &O::std, 3, "Normalisation, in place of the transform's");
  table.choice("--interpolation", &O::interpolation, {"auto", "bilinear", "bicubic"},
               "Of resizing; auto: the transform's");
  table.number("--crop-pct", &O::crop_pct, 0.0, 1.0,
               "Side of the centre crop to side of the resized image; 0: the transform's");
  table.number_or_auto("--hflip", &O::hflip, 0.0, 1.0,
                       "Probability of a horizontal flip in training; auto: the transform's");
  table.choice("--resize-passes", &O::resize_passes, {"pillow13", "pillow12"},
               "Whose order of the two passes of a resize");
  table.number("-j,--workers", &O::workers, 0, 256, "Threads that load images, for each rank",
               Effect::pace);
}

void add_model_options(TableBuilder& table) {
  using O = TrainOptions;
  table.group("Model");
  table.text("--model", &O::model, "NAME", "As timm names it: resnet18, resnet50d …");
  table.text("--weights", &O::weights, "FILE", "Start from this .safetensors file");
  table.flag(
      "--pretrained", &O::pretrained,
      "Start from the model's published weights, if they are in the local Hugging Face cache",
      Effect::results);
  table.choice("--freeze", &O::freeze, {"none", "backbone"},
               "What is not trained; a frozen backbone still moves its running statistics");
  table.choice("--precision", &O::precision, {"f32", "bf16"}, "Of convolutions and linear layers");
}

void add_optimisation_options(TableBuilder& table) {
  using O = TrainOptions;
  table.group("Optimisation");
  table.choice("--opt", &O::opt, {"adamw", "adam", "sgd"}, "Optimizer");
  table.number("--lr", &O::lr, 0.0, 1e6, "Learning rate at its highest");
  table.number("--momentum", &O::momentum, 0.0, 1.0,
               "Of sgd; onecycle moves it between 0.85 and 0.95 all the same");
  table.flag("--nesterov", &O::nesterov, "Nesterov's momentum in sgd", Effect::results);
  table.number("--weight-decay", &O::weight_decay, 0.0, 1e6, "Weight decay, of every optimizer");
  table.choice("--sched", &O::sched,
               {"cosine", "cosine-restarts", "linear", "polynomial", "inverse-sqrt", "onecycle",
                "multistep", "constant"},
               "Learning rate schedule over all steps");
  table.number("--warmup-steps", &O::warmup_steps, std::int64_t{0}, kMostLong,
               "Steps in which the learning rate rises from 0");
  table.number("--min-lr", &O::min_lr, 0.0, 1e6,
               "Learning rate at the end of cosine and polynomial; 0: their own (0 and 1e-7)");
  table.number("--num-cycles", &O::num_cycles, std::int64_t{1}, kMostLong,
               "Times that cosine-restarts falls");
  table.list("--decay-milestones", &O::decay_milestones, 0, "Steps at which multistep decays");
  table.number("--decay-rate", &O::decay_rate, 0.0, 1.0, "Factor of multistep");
  table.number("--epochs", &O::epochs, 1, 1'000'000, "Times through the data");
  table.number("--max-steps", &O::max_steps, std::int64_t{0}, kMostLong,
               "Stop after so many steps; 0: after the last epoch. The schedule does not change. A "
               "run that is resumed does not remember it",
               Effect::pace);
  table.number("--label-smoothing", &O::label_smoothing, 0.0, 1.0, "Of the cross entropy");
  table.number("--clip-grad", &O::clip_grad, 0.0, 1e30, "Largest norm of the gradient; 0: any");
  table.number("--grad-accum-steps", &O::grad_accum_steps, 1, 65536,
               "Batches whose gradients make one step");
  table.number("--seed", &O::seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
               "Of order, augmentation, initial weights and dropout");
}

void add_rank_options(TableBuilder& table) {
  using O = TrainOptions;
  table.group("Ranks");
  table.number("-n,--ranks", &O::ranks, 1, 1024, "Processes to train on", Effect::pace);
  table.number("--virtual-ranks", &O::virtual_ranks, 1, 1024,
               "Ranks that each process plays in turn: -n 1 --virtual-ranks 4 gives the bits of -n "
               "4 with the "
               "same --threads",
               Effect::pace);
  table.number("--threads", &O::threads, 0, 1024, "Of each process; 0: its share of the CPUs");
  table.choice("--device", &O::device, {"auto", "cpu", "cuda"}, "What to compute on");
  table.choice("--all-reduce", &O::all_reduce, {"direct", "ring"}, "How gradients are summed");
  table.number("--bucket-cap-mb", &O::bucket_cap_mb, 1e-3, 1e6,
               "Megabytes of gradients that are summed at a time", Effect::pace);
  table.number("--timeout", &O::timeout, 0.1, 1e6, "Seconds until a silent rank is given up",
               Effect::pace);
}

void add_run_options(TableBuilder& table) {
  using O = TrainOptions;
  table.group("Run");
  table.text("-o,--output", &O::output, "DIR", "Folder of the run; empty: runs/MODEL-DATE-TIME",
             Effect::control);
  table.add(
      "--save-every", "WHEN", "Checkpoints: 200steps, 10min, epoch, 3epochs or never", Effect::pace,
      true, [](const O& options) { return to_string(options.save_every); },
      [](O& options, const std::string& text) { options.save_every = parse_save_every(text); });
  table.number("--checkpoint-hist", &O::checkpoint_hist, 1, kMostInt, "Newest checkpoints to keep",
               Effect::pace);
  table.number("--log-interval,--log-step", &O::log_interval, std::int64_t{1}, kMostLong,
               "Steps from one line of the log to the next", Effect::pace);
  table.text("--resume", &O::resume, "auto|PATH",
             "Go on from the newest checkpoint of the run folder, or of this one, or from this "
             "file; options that are not given are those of the run",
             Effect::control);
  table.flag("--force", &O::force,
             "Resume with options that differ, or start over where a run is (it is moved aside)",
             Effect::control);
  table.flag("--dry-run", &O::dry_run, "Show what would be done, and stop", Effect::control);
  table.flag("--json", &O::json, "Results as lines of JSON on stdout", Effect::control);
  table.flag("--plain", &O::plain, "Lines in place of a progress bar", Effect::control);
  table.flag("--tee", &O::tee, "Show what the other ranks print, as [rK] lines", Effect::control);
}

const OptionSpec* find(const std::vector<OptionSpec>& table, std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  for (const OptionSpec& spec : table) {
    if (spec.key == key || (spec.flags + ",").find("--" + key + ",") != std::string::npos) {
      return &spec;
    }
  }
  return nullptr;
}

void set_option(const std::vector<OptionSpec>& table, TrainOptions& options, const std::string& key,
                const std::string& value, const std::string& source) {
  const OptionSpec* spec = find(table, key);
  if (spec == nullptr) {
    std::vector<std::string> keys;
    for (const OptionSpec& known : table) keys.push_back(known.key);
    throw UsageError(
        fmt::format("{}: there is no option {}{}", source, key, did_you_mean_option(key, keys)));
  }
  try {
    spec->set(options, value);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

/// An option that matters only where `chooser` has one of these values.
struct Use {
  std::string key;
  std::string chooser;
  std::vector<std::string> values;
};

std::vector<Use> uses() {
  return {{"warmup-steps",
           "sched",
           {"cosine", "cosine-restarts", "linear", "polynomial", "inverse-sqrt", "constant"}},
          {"min-lr", "sched", {"cosine", "polynomial"}},
          {"num-cycles", "sched", {"cosine-restarts"}},
          {"decay-milestones", "sched", {"multistep"}},
          {"decay-rate", "sched", {"multistep"}},
          {"momentum", "opt", {"sgd"}}};
}

/// An option that would do nothing is a misunderstanding.
void require_use(const TrainOptions& options) {
  const std::vector<OptionSpec> table = train_option_table();
  const TrainOptions defaults;
  for (const Use& use : uses()) {
    const OptionSpec& spec = *find(table, use.key);
    const std::string chosen = find(table, use.chooser)->get(options);
    if (spec.get(options) == spec.get(defaults)) continue;
    if (std::find(use.values.begin(), use.values.end(), chosen) != use.values.end()) continue;
    throw UsageError(fmt::format("--{} {}: --{} {} has no use for it (it is for {})", use.key,
                                 spec.get(options), use.chooser, chosen,
                                 fmt::join(use.values, ", ")));
  }
}

}  // namespace

SaveEvery parse_save_every(const std::string& text) {
  using Unit = SaveEvery::Unit;
  if (text == "never") return {Unit::never, 0};
  if (text == "epoch") return {Unit::epochs, 1};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parse_number<std::int64_t>(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  if (count && *count > 0) {
    if (unit == "steps" || unit == "step") return {Unit::steps, *count};
    if (unit == "min") return {Unit::minutes, *count};
    if (unit == "epochs" || unit == "epoch") return {Unit::epochs, *count};
  }
  throw UsageError(
      fmt::format("expected 200steps, 10min, epoch, 3epochs or never, got \"{}\"", text));
}

std::string to_string(const SaveEvery& every) {
  switch (every.unit) {
    case SaveEvery::Unit::never:
      return "never";
    case SaveEvery::Unit::steps:
      return fmt::format("{}steps", every.count);
    case SaveEvery::Unit::minutes:
      return fmt::format("{}min", every.count);
    case SaveEvery::Unit::epochs:
      return every.count == 1 ? "epoch" : fmt::format("{}epochs", every.count);
  }
  return "never";
}

std::vector<OptionSpec> train_option_table() {
  TableBuilder table;
  add_data_options(table);
  add_model_options(table);
  add_optimisation_options(table);
  add_rank_options(table);
  add_run_options(table);
  return table.take();
}

std::string variable_of(const std::string& key) {
  std::string name = "COLLAR_" + key;
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name;
}

void set_option(TrainOptions& options, const std::string& key, const std::string& value,
                const std::string& source) {
  set_option(train_option_table(), options, key, value, source);
}

void validate(const TrainOptions& options) {
  require_use(options);
  if (options.data.empty()) {
    throw UsageError(
        "which photos? Give a folder: collar train DIR (`collar data synth DIR` makes one)");
  }
  if (options.pretrained && !options.weights.empty()) {
    throw UsageError("--pretrained and --weights both say where to start from: choose one");
  }
  if (options.nesterov && (options.opt != "sgd" || options.momentum == 0)) {
    throw UsageError("--nesterov needs --opt sgd and a --momentum above 0");
  }
  if (options.sched == "multistep" && options.decay_milestones.empty()) {
    throw UsageError("--sched multistep needs --decay-milestones, the steps at which it decays");
  }
  if (options.sched == "cosine-restarts" && options.num_cycles == 1) {
    throw UsageError("--sched cosine-restarts needs --num-cycles, 2 or more: once is cosine");
  }
  if (options.device == "cuda") {
    throw UsageError(
        fmt::format("--device cuda: CUDA is {}; cpu is what there is", build_info().cuda));
  }
  if (options.logical_ranks() > 4096) {
    throw UsageError(fmt::format("--ranks {} times --virtual-ranks {} are {} ranks; at most 4096",
                                 options.ranks, options.virtual_ranks, options.logical_ranks()));
  }
  for (const double value : options.std) {
    if (!(value > 0))
      throw UsageError(fmt::format("--std: expected numbers above 0, got {}", value));
  }
  for (const double step : options.decay_milestones) {
    if (!(step >= 0 && step < 1e15) ||
        step != static_cast<double>(static_cast<std::int64_t>(step))) {
      throw UsageError(fmt::format("--decay-milestones: expected whole numbers, got {}", step));
    }
  }
}

std::string to_toml(const TrainOptions& options) {
  std::string text = "# What this run was started with: collar train --config FILE repeats it.\n";
  std::string group;
  for (const OptionSpec& spec : train_option_table()) {
    if (spec.effect == Effect::control) continue;
    if (spec.group != group) text += fmt::format("\n# {}\n", spec.group);
    group = spec.group;
    const std::string value = spec.get(options);
    text += fmt::format("{} = {}\n", spec.key,
                        spec.quoted ? toml_string(value)
                        : spec.list ? "[" + value + "]"
                                    : value);
  }
  return text;
}

TrainOptions options_from_toml(const std::string& toml, const std::string& name) {
  const std::vector<OptionSpec> table = train_option_table();
  TrainOptions options;
  for (const TomlEntry& entry : parse_toml(toml, name)) {
    set_option(table, options, entry.key, entry.value, fmt::format("{}:{}", name, entry.line));
  }
  return options;
}

bool sums_in_tree_order(const TrainOptions& options) {
  return options.all_reduce == "direct" &&
         (options.ranks == 1 || std::has_single_bit(static_cast<unsigned>(options.virtual_ranks)));
}

std::vector<OptionDifference> resume_differences(const TrainOptions& before,
                                                 const TrainOptions& now) {
  std::vector<OptionDifference> differences;
  const auto compare = [&](const std::string& key, const std::string& a, const std::string& b) {
    if (a != b) differences.push_back({key, a, b});
  };
  for (const OptionSpec& spec : train_option_table()) {
    if (spec.effect == Effect::results) compare(spec.key, spec.get(before), spec.get(now));
  }
  const auto spread = [](const TrainOptions& options) {
    return fmt::format("{} processes of {}", options.ranks, options.virtual_ranks);
  };
  if (before.logical_ranks() != now.logical_ranks()) {
    compare("logical ranks", std::to_string(before.logical_ranks()),
            std::to_string(now.logical_ranks()));
  } else if (!sums_in_tree_order(before) || !sums_in_tree_order(now)) {
    compare("ranks x virtual-ranks", spread(before), spread(now));
  }
  if (before.all_reduce == "ring" && now.all_reduce == "ring") {
    compare("bucket-cap-mb", fmt::format("{}", before.bucket_cap_mb),
            fmt::format("{}", now.bucket_cap_mb));
  }
  return differences;
}

TrainCommandLine::TrainCommandLine(CLI::App& command) : table_(train_option_table()) {
  const TrainOptions defaults;
  for (const OptionSpec& spec : table_) {
    CLI::Option* option = nullptr;
    if (spec.placeholder.empty()) {
      option = command.add_flag(spec.flags, spec.help);
    } else {
      option = command.add_option(spec.flags, texts_[spec.key], spec.help);
      option->type_name(spec.placeholder);
      option->take_last();
      option->default_str(spec.get(defaults));
      if (spec.list) option->join(',')->trigger_on_parse();  // which forgets earlier ones
    }
    option->group(spec.group);
    given_[spec.key] = option;
  }
  command
      .add_option("--config", config_, "Take options from this file, such as a run's config.toml")
      ->type_name("FILE")
      ->group("Run");
  command
      .add_option("--set", assignments_,
                  "KEY=VALUE: set an option by its name in config.toml; may be repeated; "
                  "an option itself wins")
      ->type_name("KEY=VALUE")
      ->expected(1, 1)
      ->take_all()
      ->group("Run");
}

TrainOptions TrainCommandLine::resolve(const std::function<const char*(const char*)>& variable,
                                       TrainOptions options) const {
  if (!config_.empty()) {
    for (const TomlEntry& entry : read_toml(config_)) {
      set_option(table_, options, entry.key, entry.value,
                 fmt::format("{}:{}", config_, entry.line));
    }
  }
  for (const OptionSpec& spec : table_) {
    const std::string name = variable_of(spec.key);
    const char* value = variable(name.c_str());
    if (value != nullptr && *value != '\0') set_option(table_, options, spec.key, value, name);
  }
  for (const std::string& assignment : assignments_) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) {
      throw UsageError(fmt::format("--set: expected KEY=VALUE, got \"{}\"", assignment));
    }
    set_option(table_, options, assignment.substr(0, equals), assignment.substr(equals + 1),
               "--set " + assignment.substr(0, equals));
  }
  for (const OptionSpec& spec : table_) {
    if (given_.at(spec.key)->count() == 0) continue;
    const std::string& text = spec.placeholder.empty() ? "true" : texts_.at(spec.key);
    set_option(table_, options, spec.key, text, spec.key == "data" ? "DATA" : "--" + spec.key);
  }
  return options;
}

}  // namespace collar::apps
