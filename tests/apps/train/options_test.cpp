// SPDX-License-Identifier: Apache-2.0
#include "apps/train/options.hpp"

#include <catch2/catch.hpp>

#include "apps/command_line.hpp"
#include "apps/toml.hpp"
#include "apps/train/recipe.hpp"
#include "kernels/core/error.hpp"
#include "tests/apps/support/program.hpp"

using namespace collar::apps;
using Catch::Matchers::Contains;
using collar::UsageError;

namespace {

/// What `collar train ARGUMENTS` resolves to, with these variables.
TrainOptions resolve(const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& variables = {},
                     const TrainOptions& defaults = {}) {
  CLI::App program("", "collar");
  CLI::App* train = add_command(program, "train", "");
  const TrainCommandLine command_line(*train);
  std::vector<std::string> words = {"train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  parse_command_line(program, words);
  const auto variable = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const TrainOptions options = command_line.resolve(variable, defaults);
  validate(options);
  return options;
}

TrainOptions from_toml(const std::string& text) {
  TrainOptions options;
  for (const TomlEntry& entry : parse_toml(text, "config.toml")) {
    set_option(options, entry.key, entry.value, "config.toml");
  }
  return options;
}

}  // namespace

TEST_CASE("The article's recipe is what its command line says") {
  const TrainOptions options =
      resolve({"photos", "--model", "resnet50d", "--freeze", "backbone", "--opt", "adamw", "--lr",
               "3e-2", "--weight-decay", "1e-3", "--sched", "cosine", "--warmup-steps", "5",
               "--epochs", "3", "-n", "2"});
  CHECK(options.data == "photos");
  CHECK(options.model == "resnet50d");
  CHECK(options.freeze == "backbone");
  CHECK(options.lr == 3e-2);
  CHECK(options.weight_decay == 1e-3);
  CHECK(options.warmup_steps == 5);
  CHECK(options.epochs == 3);
  CHECK(options.ranks == 2);
  CHECK(options.transform == "article");
  CHECK(options.save_every == SaveEvery{});
}

TEST_CASE("timm's spellings work: underscores, three numbers after --mean, aliases") {
  const TrainOptions options =
      resolve({"photos", "--batch_size", "8", "--mean", "0.5", "0.4", "0.3", "--std=1,1,1",
               "--log-step", "7", "--save_every", "10min"});
  CHECK(options.batch_size == 8);
  CHECK(options.mean == std::vector<double>{0.5, 0.4, 0.3});
  CHECK(options.std == std::vector<double>{1, 1, 1});
  CHECK(options.log_interval == 7);
  CHECK(options.save_every == SaveEvery{SaveEvery::Unit::minutes, 10});
}

TEST_CASE(
    "The command line beats the environment, the environment the file, the file the default") {
  const collar::test::TemporaryDirectory folder;
  const auto file = (folder.path() / "config.toml").string();
  collar::test::write_text(file, "lr = 0.1\nepochs = 4\nseed = 5\nbatch_size = 6\n");
  const TrainOptions options =
      resolve({"photos", "--config", file, "--lr", "0.3", "--set", "clip-grad=0.5"},
              {{"COLLAR_LR", "0.2"}, {"COLLAR_EPOCHS", "7"}, {"COLLAR_SEED", ""}});
  CHECK(options.lr == 0.3);
  CHECK(options.epochs == 7);
  CHECK(options.seed == 5);
  CHECK(options.batch_size == 6);
  CHECK(options.clip_grad == 0.5);
  CHECK(resolve({"photos", "--lr", "0.3", "--set", "lr=0.4"}).lr == 0.3);
  CHECK(options.opt == "adamw");
}

TEST_CASE("A bad value says where it came from and what was expected") {
  CHECK_THROWS_WITH(
      resolve({"d", "--batch-size", "many"}),
      Contains("--batch-size: expected a whole number from 1 to 65536, got \"many\""));
  CHECK_THROWS_WITH(resolve({"d"}, {{"COLLAR_LR", "-1"}}),
                    Contains("COLLAR_LR: expected a number"));
  CHECK_THROWS_WITH(resolve({"d", "--lr", "nan"}), Contains("--lr"));
  CHECK_THROWS_WITH(resolve({"d", "--opt", "adamv"}),
                    Contains("adamw, adam, sgd") && Contains("did you mean adam"));
  CHECK_THROWS_WITH(resolve({"d", "--set", "batchsize=3"}), Contains("did you mean batch-size?"));
  CHECK_THROWS_WITH(resolve({"d", "--set", "lr"}), Contains("KEY=VALUE"));
  CHECK_THROWS_WITH(resolve({"d", "--save-every", "10parsecs"}), Contains("200steps, 10min"));
  CHECK_THROWS_WITH(resolve({"d", "--mean", "1,2"}), Contains("expected 3 numbers"));
  CHECK_THROWS_WITH(resolve({}), Contains("collar train DIR"));
}

TEST_CASE("Values that do not go together are refused") {
  CHECK_THROWS_WITH(resolve({"d", "--pretrained", "--weights", "w"}), Contains("choose one"));
  CHECK_THROWS_WITH(resolve({"d", "--nesterov"}), Contains("--opt sgd"));
  CHECK_NOTHROW(resolve({"d", "--nesterov", "--opt", "sgd"}));
  CHECK_THROWS_WITH(resolve({"d", "--sched", "multistep"}), Contains("--decay-milestones"));
  CHECK_THROWS_WITH(resolve({"d", "--sched", "multistep", "--decay-milestones", "1.5"}),
                    Contains("whole numbers"));
  CHECK_THROWS_WITH(resolve({"d", "-n", "1000", "--virtual-ranks", "1000"}), Contains("4096"));
  CHECK_THROWS_WITH(resolve({"d", "--std", "1,0,1"}), Contains("above 0"));
}

TEST_CASE("An option that would do nothing is refused") {
  CHECK_THROWS_WITH(resolve({"d", "--sched", "linear", "--min-lr", "1e-5"}),
                    Contains("--min-lr 1e-05: --sched linear has no use for it (it is for cosine, "
                             "polynomial)"));
  for (const char* schedule : {"onecycle", "multistep"}) {
    CHECK_THROWS_WITH(resolve({"d", "--sched", schedule, "--warmup-steps", "5"}),
                      Contains("--warmup-steps 5"));
  }
  CHECK_THROWS_WITH(resolve({"d", "--decay-rate", "0.5"}), Contains("multistep"));
  CHECK_THROWS_WITH(resolve({"d", "--num-cycles", "3"}), Contains("cosine-restarts"));
  CHECK_THROWS_WITH(resolve({"d", "--sched", "cosine-restarts"}), Contains("--num-cycles"));
  CHECK_THROWS_WITH(resolve({"d", "--momentum", "0.5"}), Contains("sgd"));
  CHECK_NOTHROW(resolve({"d", "--momentum", "0.9"}));  // says what is so anyway
}

TEST_CASE("A device that is not there is refused with what there is") {
  CHECK_THROWS_WITH(resolve({"d", "--device", "cuda"}), Contains("CUDA is off") && Contains("cpu"));
  CHECK_NOTHROW(resolve({"d", "--device", "cpu"}));
}

TEST_CASE("What is given twice counts as it was given last") {
  const TrainOptions options = resolve({"d", "-j", "1", "--lr=1", "-j", "3", "--lr", "2", "--mean",
                                        "1", "2", "3", "--std=1,1,1", "--mean=4,5,6"});
  CHECK(options.mean == std::vector<double>{4, 5, 6});
  CHECK(options.std == std::vector<double>{1, 1, 1});
  CHECK(options.workers == 3);
  CHECK(options.lr == 2);
}

TEST_CASE("What a run was started with is below all that is given now") {
  TrainOptions run;
  run.lr = 0.5;
  run.data = "pets";
  run.epochs = 7;
  const TrainOptions options = resolve({"--epochs", "8"}, {}, run);
  CHECK(options.data == "pets");
  CHECK(options.lr == 0.5);
  CHECK(options.epochs == 8);
}

TEST_CASE("What the transform decides is written down as it is") {
  TrainOptions options = resolve({"d", "--transform", "timm"});
  CHECK_FALSE(options.hflip);
  resolve_preprocessing(options);
  CHECK(options.hflip == 0.5);
  CHECK(options.interpolation == "bicubic");
  CHECK(options.crop_pct == 0.875);
  CHECK_THAT(to_toml(options), Contains("hflip = 0.5") && Contains("mean = [0.485,0.456,0.406]"));
  options = resolve({"d", "--transform", "timm", "--hflip", "0"});
  resolve_preprocessing(options);
  CHECK(options.hflip == 0.0);
}

TEST_CASE("Every option survives the way through config.toml, but for those of one call") {
  TrainOptions options;
  options.data = "my \"photos\" \\ here";
  options.mean = {0.485, 0.456, 0.406};
  options.lr = 0.1 + 0.2;  // needs all its digits
  options.seed = 18446744073709551615u;
  options.save_every = {SaveEvery::Unit::steps, 200};
  options.nesterov = true;
  options.weights = "a.safetensors";
  options.force = true;
  options.output = "runs/x";
  const TrainOptions read = from_toml(to_toml(options));
  for (const OptionSpec& spec : train_option_table()) {
    INFO(spec.key);
    const bool kept = spec.effect != Effect::control;
    CHECK(spec.get(read) == spec.get(kept ? options : TrainOptions{}));
  }
}

TEST_CASE("Every option of the table accepts what it prints") {
  const TrainOptions defaults;
  for (const OptionSpec& spec : train_option_table()) {
    INFO(spec.key);
    TrainOptions options;
    CHECK_NOTHROW(spec.set(options, spec.get(defaults)));
    CHECK(spec.get(options) == spec.get(defaults));
  }
}

TEST_CASE("What matters to a resumed run is listed") {
  TrainOptions before;
  TrainOptions now;
  now.workers = 7;
  now.log_interval = 1;
  now.max_steps = 3;
  now.bucket_cap_mb = 0.0625;
  CHECK(resume_differences(before, now).empty());
  now.lr = 0.5;
  now.hflip = 0.5;
  const auto differences = resume_differences(before, now);
  REQUIRE(differences.size() == 2);
  CHECK(differences[0].key == "hflip");
  CHECK(differences[1].key == "lr");
  CHECK(differences[1].before == "0.001");
  CHECK(differences[1].now == "0.5");
}

TEST_CASE("Ranks may be spread anew where the order of addition allows it") {
  const auto differences = [](int n, int v, int now_n, int now_v, const char* algorithm) {
    TrainOptions before;
    before.ranks = n;
    before.virtual_ranks = v;
    before.all_reduce = algorithm;
    TrainOptions now = before;
    now.ranks = now_n;
    now.virtual_ranks = now_v;
    return resume_differences(before, now);
  };
  CHECK(differences(4, 1, 2, 2, "direct").empty());
  CHECK(differences(4, 1, 1, 4, "direct").empty());
  CHECK(differences(3, 1, 1, 3, "direct").empty());
  CHECK(differences(6, 1, 2, 3, "direct").size() == 1);
  CHECK(differences(4, 1, 2, 2, "ring").size() == 1);
  CHECK(differences(4, 1, 2, 1, "direct").at(0).key == "logical ranks");
}

TEST_CASE("The ways to say when to save") {
  CHECK(to_string(parse_save_every("200steps")) == "200steps");
  CHECK(to_string(parse_save_every("1epoch")) == "epoch");
  CHECK(to_string(parse_save_every("3epochs")) == "3epochs");
  CHECK(to_string(parse_save_every("never")) == "never");
  for (const char* wrong :
       {"", "0steps", "-1steps", "10", "min", "1.5min", "99999999999999999999steps"}) {
    CHECK_THROWS_AS(parse_save_every(wrong), UsageError);
  }
}
