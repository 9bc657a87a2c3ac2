// SPDX-License-Identifier: Apache-2.0
#include "data/transform/resize.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <optional>

#include "data/transform/crop.hpp"
#include "data/transform/pipeline.hpp"
#include "kernels/core/error.hpp"
#include "tests/data/support/csv.hpp"
#include "tests/data/support/images.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/sha256.hpp"

using namespace collar;
using data::Interpolation;
using data::PassOrder;
using data::Resize;

namespace {

data::Image apply(const data::Pipeline& pipeline, data::Image image) {
  data::SampleRandom unused(0, 0, 0);
  return pipeline.transform(std::move(image), unused);
}

Interpolation filter_of(const std::string& name) {
  return name == "nearest-exact" ? Interpolation::nearest : data::interpolation_from_name(name);
}

/// "97x131" (height x width) or "64" (short edge).
struct Size {
  int height = 0;
  std::optional<int> width;

  explicit Size(const std::string& text) {
    int second = 0;
    const int read = std::sscanf(text.c_str(), "%dx%d", &height, &second);
    if (read == 2) width = second;
  }
};

data::Pipeline golden_pipeline(const test::CsvRow& row, PassOrder order) {
  const data::Resampling resampling{filter_of(row.at("filter")), order};
  const Size size(row.at("size"));
  if (row.at("op") == "resize+crop")
    return {Resize(size.height, resampling), data::CenterCrop(*size.width)};
  if (row.at("op") == "crop")
    return {data::CenterCrop(size.height, size.width.value_or(size.height))};
  if (size.width) return {Resize(size.height, *size.width, resampling)};
  return {Resize(size.height, resampling)};
}

}  // namespace

TEST_CASE("Resizing and cropping give the bytes of Pillow 13 and of Pillow 12") {
  REQUIRE_SHARED(photos, "data");
  REQUIRE_SHARED(golden, "golden/data/resize.csv");
  const auto rows = test::read_csv(golden);
  REQUIRE(rows.size() > 1000);
  std::string source;
  std::optional<data::Image> image;
  std::string wrong_rows;
  int vertical_first = 0;
  for (const auto& row : rows) {
    if (row.at("source") != source) image = test::source_image(source = row.at("source"), photos);
    const auto hash_with = [&](PassOrder order) {
      data::Image copy = data::resize(image->view(), image->size());
      const data::Image result = apply(golden_pipeline(row, order), std::move(copy));
      CHECK(result.width() == std::stoi(row.at("out_w")));
      CHECK(result.height() == std::stoi(row.at("out_h")));
      return test::sha256_of(result.bytes());
    };
    bool same = hash_with(PassOrder::pillow13) == row.at("sha256");
    if (!row.at("sha256_horizontal_first").empty()) {
      same &= hash_with(PassOrder::pillow12) == row.at("sha256_horizontal_first");
      ++vertical_first;
    }
    if (!same)
      wrong_rows +=
          source + ": " + row.at("op") + " " + row.at("filter") + " " + row.at("size") + "\n";
  }
  CHECK(wrong_rows == "");
  CHECK(vertical_first > 0);
}

TEST_CASE("Small images are resized to these pixels") {
  REQUIRE_SHARED(golden, "golden/data/tiny_pixels.json");
  const auto rows = test::read_json(golden).at("rows");
  int compared = 0;
  for (const auto& row : rows) {
    if (row.at("op") != "resize") continue;
    const data::Image source = test::source_image(row.at("source"), {});
    const data::ImageSize size{row.at("w"), row.at("h")};
    const data::Image result = data::resize(source.view(), size, {filter_of(row.at("filter"))});
    INFO(row.at("source") << " " << row.at("filter") << " to " << size.width << " x "
                          << size.height);
    const auto bytes = result.bytes();
    CHECK(std::vector<int>(bytes.begin(), bytes.end()) == row.at("rgb").get<std::vector<int>>());
    ++compared;
  }
  CHECK(compared == 84);
}

TEST_CASE("A view is resized as if its surroundings did not exist") {
  const data::Image image = test::formula_image("syn", {60, 50});
  const data::Image cut = data::crop(image.view(), 7, 9, {30, 20});
  const data::Image from_cut = data::resize(cut.view(), {11, 13});
  const data::Image from_view = data::resize(image.view(7, 9, {30, 20}), {11, 13});
  CHECK(test::sha256_of(from_cut.bytes()) == test::sha256_of(from_view.bytes()));
}

TEST_CASE("Resize says what sizes it makes, and refuses impossible ones") {
  CHECK(Resize(20, 30).output_size(std::nullopt) == data::ImageSize{30, 20});
  CHECK(Resize(20).output_size(std::nullopt) == std::nullopt);
  CHECK(Resize(20).output_size(data::ImageSize{500, 375}) == data::ImageSize{26, 20});
  CHECK_THROWS_AS(Resize(0), UsageError);
  CHECK_THROWS_AS(Resize(-1, 5), UsageError);
  // A strip of 1 x 60000 pixels would become 256 x 15360000.
  const data::Image strip = test::formula_image("flat", {1, 60000});
  data::SampleRandom unused(0, 0, 0);
  CHECK_THROWS_AS(Resize(256).apply(data::resize(strip.view(), strip.size()), unused), DataError);
}
