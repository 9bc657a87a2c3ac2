// SPDX-License-Identifier: Apache-2.0
// The options of `collar train`: one struct, one table that says everything about each of them, and
// what follows from the table: the command line, environment variables, config.toml, `--set`, and
// which differences matter to a run that is resumed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace collar::apps {

/// When checkpoints are written: "200steps", "10min", "epoch" (every one), "3epochs", "never".
struct SaveEvery {
  enum class Unit { never, steps, minutes, epochs };
  Unit unit = Unit::epochs;
  std::int64_t count = 1;
  friend bool operator==(const SaveEvery&, const SaveEvery&) = default;
};
/// Throws UsageError that shows the forms.
SaveEvery parse_save_every(const std::string& text);
std::string to_string(const SaveEvery& every);

struct TrainOptions {
  // Data
  std::string data;     ///< the folder; required
  int img_size = 224;   ///< height and width, pixels
  int batch_size = 64;  ///< images of one micro-batch of one logical rank
  int num_classes = 0;  ///< 0: as many as the folder has
  std::string transform = "article";
  std::vector<double> mean;  ///< empty: what the transform says
  std::vector<double> std;   ///< empty: what the transform says
  std::string interpolation = "auto";
  double crop_pct = 0;          ///< 0: what the transform says
  std::optional<double> hflip;  ///< probability; empty: what the transform says
  std::string resize_passes = "pillow13";
  int workers = 2;  ///< loader threads of each rank

  // Model
  std::string model = "resnet50d";
  std::string weights;  ///< a .safetensors file
  bool pretrained = false;
  std::string freeze = "none";
  std::string precision = "f32";

  // Optimisation
  std::string opt = "adamw";
  double lr = 1e-3;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-2;
  std::string sched = "cosine";
  std::int64_t warmup_steps = 0;
  double min_lr = 0;                     ///< where the schedule ends; 0: at its own end
  std::int64_t num_cycles = 1;           ///< of cosine-restarts
  std::vector<double> decay_milestones;  ///< optimizer steps
  double decay_rate = 0.1;
  int epochs = 10;
  std::int64_t max_steps = 0;  ///< stop there; 0: at the end of the last epoch
  double label_smoothing = 0;
  double clip_grad = 0;  ///< largest norm; 0: no clipping
  int grad_accum_steps = 1;
  std::uint64_t seed = 42;

  // Ranks
  int ranks = 1;          ///< processes
  int virtual_ranks = 1;  ///< logical ranks each process plays in turn
  int threads = 0;        ///< of each rank; 0: this rank's share of the CPUs
  std::string device = "auto";
  std::string all_reduce = "direct";
  double bucket_cap_mb = 25;
  double timeout = 60;  ///< seconds until a silent rank is given up

  // Run
  std::string output;  ///< empty: runs/MODEL-DATE-TIME
  SaveEvery save_every;
  int checkpoint_hist = 3;  ///< checkpoints kept
  std::int64_t log_interval = 10;
  std::string resume;  ///< "", "auto" or a path
  bool force = false;
  bool dry_run = false;
  bool json = false;
  bool plain = false;
  bool tee = false;

  /// Ranks as sharding and averaging see them.
  int logical_ranks() const { return ranks * virtual_ranks; }
};

/// What an option has a say in.
enum class Effect {
  results,  ///< the numbers that come out
  pace,     ///< how fast, how often, where; kept in config.toml all the same
  control   ///< only this call
};

struct OptionSpec {
  std::string flags;  ///< "-b,--batch-size"; "DATA" for the folder
  std::string key;    ///< "batch-size": in config.toml and behind --set; COLLAR_BATCH_SIZE
  std::string group;
  std::string placeholder;  ///< empty: a switch
  std::string help;
  Effect effect;
  bool quoted;  ///< a string in TOML
  bool list;    ///< an array in TOML
  std::function<std::string(const TrainOptions&)> get;
  /// Throws UsageError that says what was expected.
  std::function<void(TrainOptions&, const std::string&)> set;
};

/// All options, in the order in which help shows them.
std::vector<OptionSpec> train_option_table();

/// "COLLAR_BATCH_SIZE" of "batch-size".
std::string variable_of(const std::string& key);

/// Sets one option by its key (`_` and `-` are the same) and says in errors where the value came
/// from. Throws UsageError; for an unknown key it names the nearest one.
void set_option(TrainOptions& options, const std::string& key, const std::string& value,
                const std::string& source);

/// Throws UsageError for values that are fine alone and not together, and for options that the
/// chosen schedule or optimizer has no use for.
void validate(const TrainOptions& options);

/// config.toml: every option but those of Effect::control. Reading it gives the same options.
std::string to_toml(const TrainOptions& options);

/// The inverse. `name` says in errors where the text came from. Throws UsageError.
TrainOptions options_from_toml(const std::string& toml, const std::string& name);

/// One option in two runs.
struct OptionDifference {
  std::string key;
  std::string before;
  std::string now;
};

/// What would make a resumed run differ from one that was never stopped: options of
/// Effect::results, the number of logical ranks, and how they are spread over processes where the
/// order of addition depends on it (see sums_in_tree_order).
std::vector<OptionDifference> resume_differences(const TrainOptions& before,
                                                 const TrainOptions& now);

/// True if gradients are added in the one tree order that does not depend on how the logical ranks
/// are spread over processes: the direct algorithm, with a power of two of virtual ranks or one
/// process.
bool sums_in_tree_order(const TrainOptions& options);

/// The command line of `collar train`. Keep it alive until the command line has been parsed.
class TrainCommandLine {
 public:
  /// Adds all options, --config and --set to the command.
  explicit TrainCommandLine(CLI::App& command);
  TrainCommandLine(const TrainCommandLine&) = delete;
  TrainCommandLine& operator=(const TrainCommandLine&) = delete;

  /// `defaults`, then the file of --config, then COLLAR_* variables, then --set, then the options
  /// (the last of each). `variable` looks a variable up (std::getenv in programs). Throws
  /// UsageError; what does not go together is left to validate().
  TrainOptions resolve(const std::function<const char*(const char*)>& variable,
                       TrainOptions defaults = {}) const;

 private:
  std::vector<OptionSpec> table_;
  std::map<std::string, std::string> texts_;  ///< by key, as given
  std::map<std::string, CLI::Option*> given_;
  std::string config_;
  std::vector<std::string> assignments_;
};

}  // namespace collar::apps
