// SPDX-License-Identifier: Apache-2.0
// The Accelerator in a loop of one's own: what each call does and when it does nothing, on one
// process, on virtual ranks and on ranks that are threads.
#include "apps/accelerate/accelerator.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <utility>

#include "apps/accelerate/evaluation.hpp"
#include "data/data.hpp"
#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "nn/nn.hpp"
#include "tests/apps/support/thread_accelerators.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using collar::test::expect;
using collar::test::threads_with_accelerators;

namespace {

/// Little pictures that are made, not read: number i is full of a colour that tells i and its
/// class.
class Colours final : public data::Dataset {
 public:
  explicit Colours(std::int64_t size, int pixels = 4)
      : size_(size), pixels_(pixels), pipeline_{data::Resize(pixels, pixels)} {}
  std::int64_t size() const override { return size_; }
  data::Image load(std::int64_t index) const override {
    data::Image image({pixels_, pixels_});
    std::int64_t value = index;
    for (std::uint8_t& byte : image.bytes())
      byte = static_cast<std::uint8_t>(value = value * 31 % 251 + label(index) + 1);
    return image;
  }
  std::int64_t label(std::int64_t index) const override { return index % 3; }
  std::string name(std::int64_t index) const override { return std::to_string(index); }
  const std::vector<std::string>& classes() const override { return classes_; }
  const data::Pipeline& pipeline() const override { return pipeline_; }

 private:
  std::int64_t size_;
  int pixels_;
  std::vector<std::string> classes_{"a", "b", "c"};
  data::Pipeline pipeline_;
};

/// A normalisation and a linear layer: the least that has parameters and statistics.
class TinyModel final : public nn::Module {
 public:
  explicit TinyModel(std::uint64_t seed = 1)
      : norm_(add<nn::BatchNorm2d>("norm", 3)), fc_(add<nn::Linear>("fc", 3 * 4 * 4, 3)) {
    initialize(seed);
  }
  Tensor forward(const Tensor& x) override { return fc_(flatten(norm_(x))); }

 private:
  nn::BatchNorm2d& norm_;
  nn::Linear& fc_;
};

/// All numbers of a list of tensors.
std::vector<float> numbers(const nn::Parameters& tensors) {
  std::vector<float> all;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.dtype() != DType::f32) continue;
    const std::vector<float> values = tensor.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> gradients(const nn::Module& model) {
  std::vector<float> all;
  for (const auto& [name, tensor] : model.named_parameters()) {
    const std::vector<float> values = tensor.grad().to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// What a user has in hand.
struct Training {
  Training(Accelerator& accelerator, const data::Dataset& data, std::int64_t batch_size)
      : optimizer(model.trainable_parameters(), {.lr = 0.1}),
        schedule(optimizer, {.warmup_steps = 100}),
        loader(data, {.batch_size = batch_size, .workers = 0}) {
    accelerator.prepare(model, optimizer, schedule, loader);
  }

  TinyModel model;
  nn::SGD optimizer;
  nn::ConstantWithWarmup schedule;
  data::DataLoader loader;
};

/// What was printed to stdout while one exists.
class CapturedOutput {
 public:
  CapturedOutput() : saved_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    dup2(fileno(file_), STDOUT_FILENO);
  }
  ~CapturedOutput() {
    restore();
    std::fclose(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string text() {
    restore();
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_))
      text.push_back(static_cast<char>(c));
    return text;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    std::fflush(stdout);
    dup2(saved_, STDOUT_FILENO);
    close(std::exchange(saved_, -1));
  }

  std::FILE* file_ = std::tmpfile();
  int saved_;
};

}  // namespace

TEST_CASE("A step is made by the last micro-batch of the last virtual rank, and by no other") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .virtual_ranks = 3, .threads = 1});
  CHECK(accelerator.logical_ranks() == 3);
  CHECK(accelerator.num_processes() == 1);
  const Colours photos(36);
  Training training(accelerator, photos, 2);  // 6 batches a rank: 3 steps
  CHECK(training.loader.size() == 6);

  int number = 0;
  int steps = 0;
  for (const data::Batch& batch : training.loader) {
    CHECK(batch.rank ==
          number / 2 % 3);  // a rank does its micro-batches, then it is the next one's
    const bool whole = ++number % 6 == 0;
    accelerator.backward(cross_entropy(training.model(batch.images), batch.labels));
    CHECK(accelerator.sync_gradients() == whole);
    CHECK(accelerator.grad_norm().has_value() == whole);

    const std::vector<float> before = numbers(training.model.named_parameters());
    const double rate = training.optimizer.learning_rates().front();
    training.optimizer.step();
    training.schedule.step();
    training.optimizer.zero_grad();
    steps += whole ? 1 : 0;
    // The first step is made at rate 0; each step is one tick of the schedule for each rank.
    CHECK((numbers(training.model.named_parameters()) != before) == (whole && rate > 0));
    CHECK(training.schedule.position() == 3 * steps);
  }
  CHECK(number == 18);
  CHECK(steps == 3);
  for (const auto& [name, buffer] : training.model.named_buffers()) {
    if (name == "norm.num_batches_tracked") CHECK(buffer.item() == 6);  // logical rank 0's alone
  }
}

TEST_CASE("Calls in an order that would lose gradients are refused") {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .threads = 1});
  const Colours photos(8);
  Training training(accelerator, photos, 2);
  auto batch = training.loader.begin();
  const auto backward = [&] {
    accelerator.backward(cross_entropy(training.model(batch->images), batch->labels));
  };
  backward();
  ++batch;  // the last of its step
  CHECK_THROWS_WITH(training.optimizer.step(), Contains("call accelerator.backward(loss) first"));
  CHECK_THROWS_WITH(training.optimizer.zero_grad(), Contains("in the middle of a step"));
  backward();
  training.optimizer.step();
  training.optimizer.zero_grad();
  CHECK_THROWS_AS(training.optimizer.step(), UsageError);
  training.optimizer.zero_grad();  // nothing to lose
}

TEST_CASE("Gradients are the mean over ranks and micro-batches") {
  const Colours photos(16);
  // The truth: one batch of all.
  std::vector<float> expected;
  {
    Accelerator accelerator({.threads = 1});
    Training training(accelerator, photos, 16);
    training.model.eval();  // so that a batch is the sum of its halves
    for (const data::Batch& batch : training.loader)
      accelerator.backward(cross_entropy(training.model(batch.images), batch.labels));
    REQUIRE(accelerator.grad_norm());
    expected = gradients(training.model);
  }
  const auto check = [&](Accelerator& accelerator) {
    Training training(accelerator, photos, 2);
    training.model.eval();
    std::optional<double> norm;
    for (const data::Batch& batch : training.loader) {
      accelerator.backward(cross_entropy(training.model(batch.images), batch.labels));
      norm = accelerator.clip_grad_norm(1e9);
    }
    expect(norm.has_value(), "a norm at the end of the step");
    double squares = 0;
    const std::vector<float> ours = gradients(training.model);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      squares += static_cast<double>(ours[i]) * static_cast<double>(ours[i]);
      expect(std::abs(ours[i] - expected[i]) < 1e-6f, "the gradient of one batch of all");
    }
    expect(std::abs(*norm - std::sqrt(squares)) < 1e-9, "the norm of the mean");
  };
  {
    Accelerator accelerator({.gradient_accumulation_steps = 2, .virtual_ranks = 4, .threads = 1});
    check(accelerator);
  }
  threads_with_accelerators(2, {.gradient_accumulation_steps = 2, .virtual_ranks = 2, .threads = 1},
                            check);
}

TEST_CASE("All ranks begin with the first one's values") {
  std::vector<std::vector<float>> values(3);
  threads_with_accelerators(3, {.threads = 1}, [&](Accelerator& accelerator) {
    const int rank = accelerator.process_index();
    TinyModel model(static_cast<std::uint64_t>(rank));
    accelerator.prepare(model);
    values[static_cast<std::size_t>(rank)] = numbers(model.state_dict());
  });
  CHECK(values[0] == numbers(TinyModel(0).state_dict()));
  CHECK(values[1] == values[0]);
  CHECK(values[2] == values[0]);
}

TEST_CASE("gather, reduce and any_process put the ranks' values together") {
  threads_with_accelerators(3, {.threads = 1}, [](Accelerator& accelerator) {
    const int rank = accelerator.process_index();
    const auto r = static_cast<float>(rank);
    const Tensor own = Tensor::from<float>({r, 10 * r}, {1, 2}).to(accelerator.device());
    const Tensor all = accelerator.gather(own);
    expect(all.shape() == Shape{3, 2}, "one row a rank");
    expect(all.to_vector<float>() == std::vector<float>{0, 0, 1, 10, 2, 20}, "in their order");
    expect(accelerator.gather(Tensor::from<std::int64_t>({rank}, {}).to(accelerator.device()))
                   .to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2},
           "single numbers become a list");
    expect(accelerator.reduce(own).to_vector<float>() == std::vector<float>{3, 30}, "the sum");
    expect(accelerator.reduce(own, Accelerator::Reduction::mean).to_vector<float>() ==
               std::vector<float>{1, 10},
           "the mean");
    expect(own.to_vector<float>() == std::vector<float>{r, 10 * r}, "the own value stays");
    expect(accelerator.reduce(1.5 * rank) == 4.5, "the sum of numbers");
    expect(accelerator.reduce(1.5 * rank, Accelerator::Reduction::mean) == 1.5, "their mean");
    expect(accelerator.any_process(rank == 2), "one of them is enough");
    expect(!accelerator.any_process(false), "none is none");
    accelerator.wait_for_everyone();
  });
}

TEST_CASE("Running statistics are rank 0's, or the mean over ranks") {
  const Colours photos(8);
  // What a rank's statistics become on its own: rank r of n has the photos r, r + n, …
  const auto statistics_after_training = [&](Accelerator& accelerator) {
    Training training(accelerator, photos, 2);
    for (const data::Batch& batch : training.loader) training.model(batch.images);
    const auto own = numbers(training.model.named_buffers());
    accelerator.synchronize_buffers();
    return std::pair{own, numbers(training.model.named_buffers())};
  };
  for (const Buffers buffers : {Buffers::rank_0, Buffers::mean}) {
    std::vector<std::vector<float>> own(2), shared(2);
    threads_with_accelerators(2, {.threads = 1, .buffers = buffers}, [&](Accelerator& accelerator) {
      const auto rank = static_cast<std::size_t>(accelerator.process_index());
      std::tie(own[rank], shared[rank]) = statistics_after_training(accelerator);
    });
    const std::vector<float> fresh = numbers(TinyModel().named_buffers());
    CHECK(own[0] != fresh);
    CHECK((own[1] == fresh) == (buffers == Buffers::rank_0));
    std::vector<float> expected = own[0];
    if (buffers == Buffers::mean)
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (own[0][i] + own[1][i]) / 2;
    CHECK(shared[0] == expected);
    CHECK(shared[1] == expected);
  }
}

TEST_CASE("The buckets of a real model: a small one of 1 MiB first, then of 25 MiB") {
  Accelerator accelerator({.threads = 1});
  const auto model = nn::create_model("resnet34", {.num_classes = 1000});
  accelerator.prepare(*model);
  const comm::BucketPlan& plan = accelerator.buckets()->plan();
  REQUIRE(plan.buckets.size() == 5);  // 87 MB
  for (std::size_t b = 0; b + 1 < plan.buckets.size(); ++b) {
    const comm::Bucket& bucket = plan.buckets[b];
    const std::int64_t limit = (b == 0 ? 1 : 25) * (std::int64_t{1} << 20);
    const auto bytes_before = [&](std::int64_t element) { return 4 * (element - bucket.begin); };
    CHECK(bytes_before(bucket.end) >= limit);
    CHECK(bytes_before(plan.offsets[bucket.parameters.back()]) < limit);
  }
}

TEST_CASE("print is heard once") {
  CapturedOutput output;
  threads_with_accelerators(3, {.threads = 1}, [](Accelerator& accelerator) {
    accelerator.print("{} of {}", accelerator.process_index(), accelerator.num_processes());
  });
  CHECK(output.text() == "0 of 3\n");
}

TEST_CASE("An evaluation counts every photo once and leaves the model as it was") {
  const Colours photos(11);
  const auto evaluated = [&photos](Accelerator& accelerator) {
    TinyModel model;
    data::DataLoader loader(photos, {.batch_size = 2, .workers = 0});
    accelerator.prepare(model, loader);
    const std::vector<float> before = numbers(model.state_dict());
    const Evaluation result = evaluate(accelerator, model, loader);
    expect(model.training(), "the model trains on");
    expect(numbers(model.state_dict()) == before, "nothing was learned");
    return result;
  };
  Accelerator one({.threads = 1});
  const Evaluation expected = evaluated(one);
  CHECK(expected.accuracy.samples == 11);
  CHECK(expected.accuracy.correct5 == 11);  // of three classes
  CHECK(expected.accuracy.correct1 > 0);
  CHECK(expected.loss > 0);

  const auto check = [&](Accelerator& accelerator) {
    const Evaluation ours = evaluated(accelerator);
    expect(ours.accuracy.samples == 11, "every photo once");
    expect(ours.accuracy.correct1 == expected.accuracy.correct1, "the same guesses");
    expect(std::abs(ours.loss - expected.loss) < 1e-7, "the same loss");
  };
  for (const int ranks : {2, 3, 7}) {
    INFO(ranks);
    Accelerator accelerator({.virtual_ranks = ranks, .threads = 1});
    check(accelerator);
    threads_with_accelerators(ranks, {.threads = 1}, check);
  }
  threads_with_accelerators(2, {.virtual_ranks = 2, .threads = 1}, check);
}

TEST_CASE("A step of an accelerated network converts its input only, and soon allocates nothing") {
  // tests/nn/training_step_test.cpp is the same without an accelerator.
  Accelerator accelerator({.gradient_accumulation_steps = 2, .virtual_ranks = 2, .threads = 1});
  const auto model = nn::create_model("resnet18d", {.num_classes = 3, .seed = 1});
  nn::AdamW optimizer(model->trainable_parameters());
  const Colours photos(5 * 8, 32);
  data::DataLoader loader(photos, {.batch_size = 2, .workers = 0});
  accelerator.prepare(*model, optimizer, loader);
  auto& context = std::get<CpuContext>(accelerator.device());
  auto conversions = context.conversions();
  auto allocations = context.allocator().statistics().system_allocations;
  int step = 0;
  for (const data::Batch& batch : loader) {
    accelerator.backward(cross_entropy((*model)(batch.images), batch.labels));
    accelerator.clip_grad_norm(1);
    optimizer.step();
    optimizer.zero_grad();
    if (!accelerator.sync_gradients()) continue;
    CHECK(context.conversions().count - conversions.count <= 4);  // one a micro-batch
    CHECK(context.conversions().bytes - conversions.bytes <= 4 * 2 * 3 * 32 * 32 * sizeof(float));
    if (++step > 3) CHECK(context.allocator().statistics().system_allocations == allocations);
    conversions = context.conversions();
    allocations = context.allocator().statistics().system_allocations;
  }
  CHECK(step == 5);
}

TEST_CASE("What cannot be is said at once") {
  CHECK_THROWS_AS(Accelerator({.gradient_accumulation_steps = 0}), UsageError);
  CHECK_THROWS_AS(Accelerator({.virtual_ranks = 0}), UsageError);
  CHECK_THROWS_WITH(Accelerator({.virtual_ranks = 2, .buffers = Buffers::mean}),
                    Contains("2 virtual ranks share one"));
  if (!CpuContext().has_fast_bf16())
    CHECK_THROWS_WITH(Accelerator({.precision = Precision::bf16}), Contains("bf16"));
  Accelerator accelerator({.threads = 1});
  TinyModel model, other;
  CHECK_THROWS_WITH(accelerator.backward(Tensor()), Contains("prepare()"));
  accelerator.prepare(model);
  CHECK_THROWS_WITH(accelerator.prepare(other), Contains("one model"));
}
