// SPDX-License-Identifier: Apache-2.0
#include "apps/command_line.hpp"

#include <catch2/catch.hpp>

#include "apps/nearest.hpp"
#include "apps/train/options.hpp"
#include "kernels/core/error.hpp"

using namespace collar::apps;
using collar::UsageError;
using Words = std::vector<std::string>;

namespace {

/// A program with one ordinary verb and one that runs another program.
struct Sample {
  Sample() : program("", "collar") {
    CLI::App* train = add_command(program, "train", "");
    train->add_option("-b,--batch-size", batch_size);
    train->add_option("--mean", mean)->join(',');
    train->add_flag("--dry-run");
    train->add_option("DIR", folder);
    CLI::App* launch = add_command(program, "launch", "");
    launch->add_option("-n,--ranks", ranks);
    launch->add_option("--log-dir", log_dir);
    launch->add_option("PROGRAM", command);
    launch->prefix_command();
  }
  CLI::App program;
  int batch_size = 0;
  int ranks = 0;
  std::string mean, folder, log_dir;
  Words command;
};

}  // namespace

TEST_CASE("Underscores in the names of options become dashes, in values they stay") {
  Sample sample;
  CHECK(canonical_arguments(sample.program, Words{"train", "--batch_size", "8", "my_photos"}) ==
        Words{"train", "--batch-size", "8", "my_photos"});
  CHECK(canonical_arguments(sample.program, Words{"train", "--batch_size=8", "--dry_run", "a_b"}) ==
        Words{"train", "--batch-size=8", "--dry-run", "a_b"});
}

TEST_CASE("Numbers behind a list option are one value, and what follows is not eaten") {
  Sample sample;
  parse_command_line(sample.program,
                     Words{"train", "--mean", "0.5", "-0.25", "1e-3", "photos", "-b4"});
  CHECK(sample.mean == "0.5,-0.25,1e-3");
  CHECK(sample.folder == "photos");
  CHECK(sample.batch_size == 4);
}

TEST_CASE("Nothing behind the launched program is touched") {
  Sample sample;
  parse_command_line(sample.program, Words{"launch", "-n", "2", "--log_dir", "x_y", "prog",
                                           "--no_such", "-n", "3", "--", "--help"});
  CHECK(sample.ranks == 2);
  CHECK(sample.log_dir == "x_y");
  CHECK(sample.command == Words{"prog", "--no_such", "-n", "3", "--", "--help"});
}

TEST_CASE("The mark -- before the launched program is understood") {
  Sample sample;
  parse_command_line(sample.program, Words{"launch", "-n", "2", "--", "prog", "--x"});
  CHECK(sample.command == Words{"prog", "--x"});
}

TEST_CASE("Unknown options and verbs are errors with a suggestion") {
  Sample sample;
  CHECK_THROWS_WITH(canonical_arguments(sample.program, Words{"train", "--batchsize=3"}),
                    Catch::Contains("--batchsize") && Catch::Contains("mean --batch-size?"));
  CHECK_THROWS_WITH(canonical_arguments(sample.program, Words{"trian"}),
                    Catch::Contains("did you mean train?"));
  CHECK_THROWS_AS(canonical_arguments(sample.program, Words{"train", "-q"}), UsageError);
  CHECK_THROWS_AS(parse_command_line(sample.program, Words{"train", "a", "b"}), UsageError);
}

TEST_CASE("The nearest word is near, or has the same parts") {
  CHECK(nearest("rensnet50", {"resnet18", "resnet50", "resnet50d"}) == "resnet50");
  CHECK(nearest("--label", {"--lr", "--label-smoothing"}) == "--label-smoothing");
  CHECK(nearest("xyzzy", {"train", "eval"}) == std::nullopt);
  CHECK(nearest("--smoothing", {"--seed", "--label-smoothing"}) == "--label-smoothing");
  CHECK(nearest("--num-epochs", {"--num-cycles", "--epochs"}) == "--epochs");
}

TEST_CASE("What other programs call an option leads to ours") {
  CLI::App program("", "collar");
  TrainCommandLine train(*add_command(program, "train", ""));
  const auto suggests = [&](const std::string& typed, const std::string& ours) {
    INFO(typed);
    CHECK_THROWS_WITH(canonical_arguments(program, Words{"train", typed}),
                      Catch::Contains("; did you mean " + ours + "? "));
  };
  suggests("--smoothing", "--label-smoothing");
  suggests("--nproc-per-node", "--ranks");
  suggests("--num_processes=2", "--ranks");
  suggests("--learning-rate", "--lr");
  suggests("--lerning-rate", "--lr");
  suggests("--amp", "--precision bf16");
  suggests("--warmup-epochs", "--warmup-steps");
  suggests("--wd", "--weight-decay");
  suggests("--bs", "--batch-size");
  suggests("--input-size", "--img-size");
  suggests("--checkpoint", "--resume");
  suggests("--optimizer", "--opt");
  suggests("--scheduler", "--sched");
  suggests("--decay-milestone", "--decay-milestones");
  CHECK_THROWS_WITH(canonical_arguments(program, Words{"train", "--dist-backend"}),
                    !Catch::Contains("did you mean"));
}
