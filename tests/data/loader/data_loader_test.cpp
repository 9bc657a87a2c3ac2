// SPDX-License-Identifier: Apache-2.0
#include "data/loader/data_loader.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "data/dataset/image_files.hpp"
#include "data/transform/preprocessing.hpp"
#include "kernels/core/error.hpp"
#include "tests/data/support/numbered_images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using data::Batch;
using data::DataLoader;
using data::LoaderOptions;
using nlohmann::json;
using test::NumberedImages;

namespace {

using Indices = std::vector<std::int64_t>;

std::string bytes_of(const Batch& batch) {
  Sha256 hash;
  const auto add = [&hash](const Tensor& tensor) {
    const ConstView view = tensor.view();
    hash.update(std::span(view.as<std::byte>(), view.bytes()));
  };
  add(batch.images);
  add(batch.labels);
  return to_hex(hash.finish());
}

std::vector<std::string> bytes_of_pass(DataLoader& loader) {
  std::vector<std::string> result;
  for (const Batch& batch : loader) result.push_back(bytes_of(batch));
  return result;
}

std::vector<Indices> indices_of_pass(DataLoader& loader) {
  std::vector<Indices> result;
  for (const Batch& batch : loader) result.push_back(batch.indices);
  return result;
}

/// A pipeline that costs nothing, for tests that look at indices only.
NumberedImages tiny_images(std::int64_t size) {
  return NumberedImages(size, {data::CenterCrop(1)});
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

}  // namespace

TEST_CASE("A loop over a loader sees every sample once an epoch") {
  const NumberedImages images(10);
  DataLoader loader(images, {.batch_size = 4, .shuffle = true, .workers = 2});
  CHECK(loader.size() == 3);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::multiset<std::int64_t> seen;
    for (const Batch& batch : loader) {
      CHECK(batch.epoch == epoch);
      CHECK(batch.images.shape() == Shape{batch.rows(), 3, 8, 8});
      CHECK(batch.labels.shape() == Shape{batch.rows()});
      for (std::int64_t row = 0; row < batch.rows(); ++row) {
        const std::int64_t index = batch.indices[static_cast<std::size_t>(row)];
        CHECK(batch.labels.to_vector<std::int64_t>()[static_cast<std::size_t>(row)] ==
              images.label(index));
        seen.insert(index);
      }
      CHECK(batch.valid == batch.rows());
      CHECK(batch.last == (batch.index == 2));
    }
    CHECK(seen == std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
  CHECK(loader.epoch() == 2);
}

TEST_CASE("Any number of workers and any prefetch gives the same bytes") {
  const NumberedImages images(45);
  std::vector<std::vector<std::string>> epochs;
  for (const int workers : {0, 1, 2, 3, 7}) {
    for (const int prefetch : {1, 4}) {
      DataLoader loader(
          images,
          {.batch_size = 6, .shuffle = true, .seed = 3, .workers = workers, .prefetch = prefetch});
      epochs.push_back(bytes_of_pass(loader));
      epochs.push_back(bytes_of_pass(loader));
    }
  }
  for (std::size_t i = 2; i < epochs.size(); ++i) CHECK(epochs[i] == epochs[i % 2]);
  CHECK(epochs[0] != epochs[1]);
}

TEST_CASE("A sample has the same bytes whoever loads it") {
  const NumberedImages images(45);
  const auto rows_by_sample = [&](std::int64_t ranks, std::vector<int> own,
                                  std::int64_t batch_size) {
    std::map<std::int64_t, std::vector<float>> result;
    DataLoader loader(images, {.batch_size = batch_size, .shuffle = true, .workers = 2});
    loader.shard(ranks, std::move(own));
    for (const Batch& batch : loader) {
      const std::vector<float> all = batch.images.to_vector<float>();
      const std::size_t row_size = all.size() / batch.indices.size();
      for (std::size_t row = 0; row < batch.indices.size(); ++row) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * row_size);
        result[batch.indices[row]].assign(begin, begin + static_cast<std::ptrdiff_t>(row_size));
      }
    }
    return result;
  };
  const auto alone = rows_by_sample(1, {0}, 7);
  CHECK(alone.size() == 45);
  CHECK(rows_by_sample(4, {0, 1, 2, 3}, 3) == alone);
  auto together = rows_by_sample(2, {0}, 5);
  together.merge(rows_by_sample(2, {1}, 5));
  CHECK(together == alone);
}

TEST_CASE("Shuffled batches are those of accelerate's seedable sampler") {
  REQUIRE_SHARED(path, "golden/sharding/seedable_sampler.json");
  int compared = 0;
  const json rows = test::read_json(path).at("rows");
  for (const json& row : rows) {
    if (row.at("seedable") != 1) continue;
    const json& seed = row.at("data_seed").is_null() ? row.at("seed") : row.at("data_seed");
    const NumberedImages images = tiny_images(row.at("N"));
    for (int rank = 0; rank < row.at("P"); ++rank) {
      DataLoader loader(images,
                        {.batch_size = row.at("b"), .shuffle = true, .seed = seed, .workers = 0});
      loader.shard(row.at("P"), {rank});
      for (const json& epoch : row.at("epochs")) {
        CHECK(json(indices_of_pass(loader)) == epoch[static_cast<std::size_t>(rank)]);
        ++compared;
      }
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("The recorded runs of accelerate took the same samples in the same steps") {
  REQUIRE_SHARED(folder, "golden/runs");
  int runs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.path().filename().string().starts_with("resnet18d")) continue;
    const json run = test::read_json(file.path());
    const json& config = run.at("config");
    const int ranks = config.at("world_size");
    const NumberedImages images = tiny_images(296);
    DataLoader loader(
        images, {.batch_size = config.at("batch_size_per_process"),
                 .shuffle = config.at("shuffle"),
                 .seed = config.at("shuffle") == true ? config.at("seed").get<std::uint64_t>() : 0,
                 .workers = 0});
    std::vector<int> own;
    for (int rank = 0; rank < ranks; ++rank) own.push_back(rank);
    loader.shard(ranks, own, config.at("gradient_accumulation_steps"));
    INFO(file.path());
    CHECK(loader.size() == run.at("prepared_batches"));

    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Indices>> by_micro_step;
    for (int epoch = 0; epoch < config.at("epochs"); ++epoch) {
      for (const Batch& batch : loader) {
        auto& of_ranks = by_micro_step[{batch.epoch, batch.index}];
        CHECK(of_ranks.size() ==
              static_cast<std::size_t>(batch.rank));  // ranks take turns in order
        of_ranks.push_back(batch.indices);
      }
    }
    std::vector<std::vector<Indices>> taken;
    for (auto& [when, of_ranks] : by_micro_step) taken.push_back(std::move(of_ranks));
    std::vector<std::vector<Indices>> wanted;
    for (const json& step : run.at("steps")) wanted.push_back(step.at("indices"));
    CHECK(taken == wanted);
    ++runs;
  }
  CHECK(runs > 10);
}

TEST_CASE("Pets in batches are the tensors that PyTorch's runs saw") {
  REQUIRE_SHARED(path, "golden/runs/data.json");
  REQUIRE_SHARED(pets, "data/pets");
  const json golden = test::read_json(path);
  for (const char* part : {"train", "valid"}) {
    const json& wanted = golden.at(part);
    const data::ImageFolder images(pets / part, {data::Resize(64, 64), data::ToFloat()});
    REQUIRE(images.size() == wanted.at("count"));
    DataLoader loader(images, {.batch_size = 16, .workers = 2});
    Sha256 all;
    for (const Batch& batch : loader) {
      const std::vector<float> values = batch.images.to_vector<float>();
      std::vector<std::uint8_t> bytes(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(values[i] * 255 + 0.5f);
        if (values[i] != static_cast<float>(bytes[i]) * (1.0f / 255)) FAIL("not a byte / 255");
      }
      all.update(std::as_bytes(std::span(bytes)));
      const std::size_t image_bytes = bytes.size() / batch.indices.size();
      for (std::size_t row = 0; row < batch.indices.size(); ++row) {
        const json& image = wanted.at("images")[static_cast<std::size_t>(batch.indices[row])];
        const auto hash = test::sha256_of(std::span(bytes).subspan(row * image_bytes, image_bytes));
        CHECK(hash.substr(0, 16) == image.at("sha256"));
        CHECK(images.label(batch.indices[row]) == image.at("label"));
        CHECK(images.path(batch.indices[row]) == pets / image.at("path").get<std::string>());
      }
    }
    CHECK(to_hex(all.finish()) == wanted.at("sha256"));
  }
}

TEST_CASE("Ranks that one process plays take turns, each with its micro-batches of a step") {
  const NumberedImages images = tiny_images(20);
  DataLoader loader(images, {.batch_size = 2, .workers = 1});
  loader.shard(4, {2, 3}, 2);
  CHECK(loader.size() == 3);
  CHECK(loader.batches_per_pass() == 6);
  std::vector<std::pair<int, std::int64_t>> turns;
  std::vector<Indices> indices;
  for (const Batch& batch : loader) {
    turns.emplace_back(batch.rank, batch.index);
    indices.push_back(batch.indices);
    CHECK(batch.last == (batch.index == 2));
  }
  CHECK(turns ==
        std::vector<std::pair<int, std::int64_t>>{{2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 2}, {3, 2}});
  CHECK(indices.front() == Indices{4, 5});
  CHECK(indices.back() == Indices{2, 3});  // of a second round, which begins with the first sample
}

TEST_CASE(
    "A pass that starts in the middle continues the epoch, without loading what it leaves out") {
  const NumberedImages images(50);
  const auto make = [&images] {
    DataLoader loader(images, {.batch_size = 3, .shuffle = true, .seed = 9, .workers = 2});
    loader.shard(2, {0, 1}, 2);
    loader.set_epoch(4);
    return loader;
  };
  DataLoader straight = make();
  const std::vector<std::string> whole = bytes_of_pass(straight);
  for (std::int64_t start = 0; start <= straight.size(); ++start) {
    DataLoader resumed = make();
    if (start % 2 != 0 && start != straight.size()) {
      CHECK_THROWS_AS(resumed.start_at(start), UsageError);
      continue;
    }
    resumed.start_at(start);
    images.loads = 0;
    const std::vector<std::string> rest = bytes_of_pass(resumed);
    CHECK(rest.size() == whole.size() - static_cast<std::size_t>(2 * start));
    CHECK(images.loads == static_cast<int>(rest.size() * 3));
    CHECK(std::equal(rest.rbegin(), rest.rend(), whole.rbegin()));
    CHECK(resumed.epoch() == 5);
    CHECK(bytes_of_pass(resumed).size() == whole.size());
  }
}

TEST_CASE("Small, empty and dropped rests behave alike for any number of ranks") {
  const NumberedImages three = tiny_images(3);
  const NumberedImages nothing = tiny_images(0);
  DataLoader alone(three, {.batch_size = 8, .workers = 2});
  CHECK(indices_of_pass(alone) == std::vector<Indices>{{0, 1, 2}});
  DataLoader dropped(three, {.batch_size = 8, .workers = 2, .drop_last = true});
  CHECK(dropped.size() == 0);
  CHECK(indices_of_pass(dropped).empty());
  DataLoader padded(three, {.batch_size = 2, .workers = 2});
  padded.shard(2, {1});
  CHECK(indices_of_pass(padded) == std::vector<Indices>{{2, 0}});
  DataLoader uneven(three, {.batch_size = 2, .workers = 2, .even_batches = false});
  uneven.shard(2, {0, 1});
  CHECK(indices_of_pass(uneven) == std::vector<Indices>{{0, 1}, {2}});
  DataLoader split(three, {.batch_size = 2, .workers = 2, .split_batches = true});
  split.shard(2, {1});
  CHECK(indices_of_pass(split) == std::vector<Indices>{{1}, {0}});
  DataLoader empty(nothing, {.batch_size = 2, .shuffle = true, .workers = 2});
  CHECK(indices_of_pass(empty).empty());
}

TEST_CASE("A bad image stops the loop at its batch, with its name") {
  for (const int workers : {0, 1, 3}) {
    NumberedImages images(40);
    images.bad = {22, 20, 33};
    DataLoader loader(images, {.batch_size = 8, .workers = workers});
    int batches = 0;
    const auto read_all = [&] {
      for (const Batch& batch : loader) batches += batch.rows() == 8;
    };
    CHECK_THROWS_WITH(read_all(),
                      "image 20: damaged");  // the first of the batch, whoever was faster
    CHECK(batches == 2);
  }
}

TEST_CASE("A file that is no image is named by the loader") {
  const test::TemporaryDirectory folder;
  std::filesystem::create_directories(folder.path() / "cat");
  std::ofstream(folder.path() / "cat" / "broken.jpg") << "this is text";
  const data::ImageFolder images(folder.path(), {data::Resize(8, 8)});
  DataLoader loader(images, {.batch_size = 1, .workers = 1});
  CHECK_THROWS_WITH(loader.begin(),
                    Catch::Contains("cat/broken.jpg") && Catch::Contains("not an image"));
}

TEST_CASE("An error of a transform names the file too") {
  const NumberedImages images(3, {data::RequireSize(9)});
  DataLoader loader(images, {.batch_size = 1, .workers = 1});
  CHECK_THROWS_WITH(loader.begin(), Catch::Contains("image 0: the image has 20 x 16 pixels"));
}

TEST_CASE("A pass may be abandoned anywhere, and nothing stays behind") {
  const NumberedImages images(64);
  std::thread([] {}).join();  // a sanitizer starts a thread of its own with the first one
  const std::ptrdiff_t threads_before = threads_of_this_process();
  for (int round = 0; round < 100; ++round) {
    DataLoader loader(images, {.batch_size = 4, .shuffle = true, .workers = 3, .prefetch = 2});
    for (const Batch& batch : loader) {
      if (batch.index == round % 17) break;
    }
    auto unread = loader.begin();
    auto second = loader.begin();  // passes do not disturb each other
    CHECK(unread->epoch + 1 == second->epoch);
  }
  CHECK(threads_of_this_process() == threads_before);
}

TEST_CASE("Batches may be kept, and otherwise their memory is used again") {
  const NumberedImages images(200);
  DataLoader loader(images, {.batch_size = 4, .workers = 2, .prefetch = 3});
  std::set<const void*> places;
  for (const Batch& batch : loader) places.insert(batch.images.view().data);
  for (const Batch& batch : loader) places.insert(batch.images.view().data);
  CHECK(places.size() <= 4);

  const std::vector<std::string> expected = bytes_of_pass(loader);
  loader.set_epoch(2);
  std::vector<Batch> kept;
  {
    DataLoader other(images, {.batch_size = 4, .workers = 2, .prefetch = 3});
    other.set_epoch(2);
    for (const Batch& batch : other) kept.push_back(batch);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(bytes_of(kept[i]) == expected[i]);
}

TEST_CASE("Loaders refuse what makes no sense") {
  const NumberedImages images(4);
  const NumberedImages many_sizes(4, {data::Resize(8)});
  CHECK_THROWS_WITH(DataLoader(many_sizes), Catch::Contains("one size"));
  CHECK_THROWS_AS(DataLoader(images, {.batch_size = 0}), UsageError);
  CHECK_THROWS_AS(DataLoader(images, {.workers = -1}), UsageError);
  CHECK_THROWS_AS(DataLoader(images, {.prefetch = 0}), UsageError);
  DataLoader loader(images, {.batch_size = 3, .workers = 0, .split_batches = true});
  CHECK_THROWS_AS(loader.shard(2, {0}), UsageError);
  CHECK_THROWS_AS(loader.shard(3, {3}), UsageError);
  CHECK_THROWS_AS(loader.shard(3, {1, 1}), UsageError);
  CHECK_THROWS_AS(loader.shard(3, {}), UsageError);
  CHECK_THROWS_AS(loader.shard(1, {0}, 0), UsageError);
  CHECK_THROWS_AS(loader.set_epoch(-1), UsageError);
  CHECK_THROWS_AS(loader.start_at(3), UsageError);
  CHECK(loader.size() == 2);  // as before
}
