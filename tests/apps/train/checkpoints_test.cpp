// SPDX-License-Identifier: Apache-2.0
#include "apps/train/checkpoints.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "engine/io/checkpoint.hpp"
#include "kernels/core/error.hpp"
#include "nn/nn.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using namespace collar::apps;
using Catch::Matchers::Contains;

namespace {

/// What a run consists of, small.
struct Parts {
  explicit Parts(std::size_t classes)
      : model(nn::create_model("resnet18", {.num_classes = classes, .seed = 1})),
        optimizer(model->trainable_parameters(), {.lr = 0.1, .momentum = 0.9}),
        schedule(optimizer, {.warmup_steps = 2}) {}
  Trained trained() { return {*model, optimizer, schedule}; }

  std::unique_ptr<nn::ResNet> model;
  nn::SGD optimizer;
  nn::ConstantWithWarmup schedule;
};

}  // namespace

TEST_CASE("A checkpoint comes back as it was saved") {
  const test::TemporaryDirectory folder;
  const auto path = checkpoint_path(folder.path(), 7);
  Parts before(3);
  before.schedule.set_position(1);
  const Position position{
      .step = 7, .epoch = 2, .batch = 3, .loss_sum = 0.1, .best_top1 = 50, .best_epoch = 1};
  save_checkpoint(path, before.trained(), {position, 42, "lr = 0.1\n", {{"model", "resnet18"}}});

  const CheckpointFile file = CheckpointFile::open(path);
  const CheckpointInfo info = read_checkpoint_info(file);
  CHECK(info.position == position);
  CHECK(info.photos == 42);
  CHECK(info.config == "lr = 0.1\n");
  Parts after(3);
  restore_checkpoint(file, after.trained());
  CHECK(after.schedule.position() == 1);
  CHECK(after.schedule.learning_rates() == std::vector<double>{0.05});
}

TEST_CASE("A checkpoint that does not fit is a file error with its name") {
  const test::TemporaryDirectory folder;
  const auto path = checkpoint_path(folder.path(), 1);
  Parts three(3);
  const auto refused = [&](const Trained& into) {
    CHECK_THROWS_AS(restore_checkpoint(CheckpointFile::open(path), into), FileError);
    CHECK_THROWS_WITH(restore_checkpoint(CheckpointFile::open(path), into),
                      Contains("step-1.collar"));
  };
  save_checkpoint(path, three.trained(), {{}, 42, "", nlohmann::json::object()});

  SECTION("another number of classes") {
    Parts four(4);
    refused(four.trained());
    CHECK_THROWS_WITH(restore_checkpoint(CheckpointFile::open(path), four.trained()),
                      Contains("fc.weight") && Contains("3 classes"));
  }
  SECTION("a schedule that is nowhere") {
    nlohmann::json state = CheckpointFile::open(path).state();
    std::vector<CheckpointTensor> tensors;
    const CheckpointFile file = CheckpointFile::open(path);
    for (const CheckpointEntry& entry : file.entries())
      tensors.push_back({entry.section, entry.name, file.tensor(entry.section, entry.name)});
    for (const double position : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
      state["schedule"]["position"] = {std::bit_cast<std::uint64_t>(position)};
      write_checkpoint(path, tensors, state);
      refused(three.trained());
    }
    state["schedule"] = {{"position", "seven"}};
    write_checkpoint(path, tensors, state);
    refused(three.trained());
  }
}
