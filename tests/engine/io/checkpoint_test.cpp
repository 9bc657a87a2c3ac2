// SPDX-License-Identifier: Apache-2.0
#include "engine/io/checkpoint.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/io/crc32c.hpp"
#include "engine/random.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/faulty_files.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/tensors.hpp"

using namespace collar;
using nlohmann::json;
using test::values_of;

namespace {

std::string bytes_of_file(const std::filesystem::path& path) {
  return read_text(path, std::uint64_t{1} << 30);
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::remove(path);  // ext4 flushes a file that is truncated and written again
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A run in small: two tensors with padding behind them and some state. 472 bytes.
std::vector<CheckpointTensor> small_tensors(float first) {
  return {{"model", "fc.weight", Tensor::from<float>({first, 2, 3}, {1, 3})},
          {"optimizer", "fc.weight.exp_avg", Tensor::from<float>({0.5f}, {})}};
}
const json kState = {{"step", 12}, {"classes", {"Abyssinian", "beagle"}}};

std::string small_file(const std::filesystem::path& folder) {
  const auto path = folder / "small.collar";
  write_checkpoint(path, small_tensors(1), kState);
  return bytes_of_file(path);
}

/// Whether opening or verifying a file of these bytes reports an error. Anything but a FileError
/// fails the test.
bool is_refused(const std::filesystem::path& path, std::string_view bytes) {
  write_bytes(path, bytes);
  try {
    const auto file = CheckpointFile::open(path);
    file.verify();
    file.state();
  } catch (const FileError&) {
    return true;
  }
  return false;
}

std::string message_of(const std::filesystem::path& path, std::string_view bytes) {
  write_bytes(path, bytes);
  try {
    CheckpointFile::open(path).verify();
  } catch (const FileError& error) {
    return error.what();
  }
  return "accepted";
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("A checkpoint gives back tensors of every type, and the state") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "step-3.collar";
  const std::vector<CheckpointTensor> tensors = {
      {"model", "conv1.weight", Tensor::from<float>({1, -0.0f, 3e-45f, 4, 5, 6}, {2, 3, 1, 1})},
      {"optimizer", "conv1.weight", Tensor::from<float>({7}, {1})},
      {"model", "empty", Tensor::empty({0, 3})},
      {"model", "num_batches_tracked", Tensor::from<std::int64_t>({-9}, {})},
      {"extra", "double", Tensor::from<double>({1e300}, {1})},
      {"extra", "brain", Tensor::from<bfloat16>({bfloat16(1.5f)}, {1})},
      {"extra", "half", Tensor::from<float16>({float16(1.5f)}, {1})},
      {"extra", "u8", Tensor::from<std::uint8_t>({255}, {1})},
      {"extra", "i8", Tensor::from<std::int8_t>({-1}, {1})},
      {"extra", "i32", Tensor::from<std::int32_t>({-70000}, {1})},
      {"extra", "mask", Tensor::from<bool>({true, false, true}, {3})},
  };
  const json state = {
      {"step", 3}, {"lr", 0.1 + 0.2}, {"classes", {"chat", "猫"}}, {"none", nullptr}};
  write_checkpoint(path, tensors, state);

  const auto file = CheckpointFile::open(path);
  file.verify();
  CHECK(file.state() == state);
  CHECK(file.save_id().size() == 32);
  REQUIRE(file.entries().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [section, name, tensor] = tensors[i];
    INFO(section << "/" << name);
    CHECK(file.entries()[i].name == name);
    CHECK(file.entries()[i].offset % 64 == 0);
    const Tensor loaded = file.tensor(section, name);
    CHECK(loaded.dtype() == tensor.dtype());
    CHECK(loaded.shape() == tensor.shape());
    CHECK(values_of(loaded) == values_of(tensor));
  }
  CHECK(file.contains("optimizer", "conv1.weight"));
  CHECK_FALSE(file.contains("optimizer", "empty"));
  CHECK_THROWS_WITH(file.tensor("optimizer", "empty"), Catch::Contains("has no tensor \"empty\""));

  const std::string id = file.save_id();
  write_checkpoint(path, {}, json::object());
  CHECK(CheckpointFile::open(path).entries().empty());
  CHECK(CheckpointFile::open(path).save_id() != id);
}

TEST_CASE("Content that no checkpoint can hold is refused and leaves the file as it was") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "c.collar";
  const Tensor one = Tensor::scalar(1);
  write_checkpoint(path, {}, kState);
  const std::string before = bytes_of_file(path);
  const auto refuse = [&](const std::vector<CheckpointTensor>& tensors, const json& state) {
    CHECK_THROWS_AS(write_checkpoint(path, tensors, state), UsageError);
    CHECK(bytes_of_file(path) == before);
  };
  refuse({{"a", "b", one}, {"a", "b", one}}, {});
  refuse({{std::string(513, 's'), "b", one}}, {});
  refuse({{"a", std::string(513, 'n'), one}}, {});
  refuse({{"a", "b", Tensor::empty({1, 8, 1, 1}, DType::f32, nullptr, Layout::blocked8)}}, {});
  refuse({}, json("\xff"));
  refuse({}, json(std::string((16 << 20) + 1, 'x')));
  refuse({}, {{"loss", {1.0, std::numeric_limits<double>::infinity()}}});
  refuse({}, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  json deep = 1;
  for (int i = 0; i < 64; ++i) deep = json::array({deep});
  refuse({}, json::array({deep}));
  write_checkpoint(path, {}, deep);
  CHECK(CheckpointFile::open(path).state() == deep);
}

TEST_CASE("A checkpoint cut short at any length, or added to, is refused") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "damaged.collar";
  const std::string whole = small_file(folder.path());
  REQUIRE_FALSE(is_refused(path, whole));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO(length << " of " << whole.size() << " bytes");
    CHECK(is_refused(path, std::string_view(whole).substr(0, length)));
  }
  for (std::size_t extra = 1; extra <= 70; ++extra)
    CHECK(is_refused(path, whole + std::string(extra, '\0')));
}

TEST_CASE("Every flipped bit of a checkpoint is noticed") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "damaged.collar";
  const std::string whole = small_file(folder.path());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    INFO("bit " << bit % 8 << " of byte " << bit / 8);
    CHECK(is_refused(path, bytes));
  }
}

TEST_CASE("What is wrong with a checkpoint is said") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "c.collar";
  const std::string whole = small_file(folder.path());
  const auto with = [&whole](std::size_t at, char value) {
    std::string bytes = whole;
    bytes.at(at) = value;
    return bytes;
  };
  using Catch::Contains;
  CHECK_THAT(message_of(path, "hello"), Contains("5 bytes are no Collar checkpoint"));
  CHECK_THAT(message_of(path, with(0, 'x')), Contains("is not a Collar checkpoint"));
  CHECK_THAT(message_of(path, with(8, 2)),
             Contains("has format version 2.0") && Contains("newer Collar"));
  CHECK_THAT(message_of(path, with(20, 1)), Contains("the header is damaged"));
  CHECK_THAT(message_of(path, whole + "x"), Contains("it was cut short or added to"));
  CHECK_THAT(message_of(path, with(64, 'x')),
             Contains("tensor \"fc.weight\" in section \"model\" is damaged"));
  CHECK_THAT(message_of(path, with(80, 'x')), Contains("byte 80 between tensors is not zero"));
  CHECK_THAT(message_of(path, with(192, 'x')), Contains("state or table of contents are damaged"));
  CHECK_THAT(message_of(path, with(whole.size() - 32, 'x')), Contains("footer"));
}

TEST_CASE("A file of version 1.0 stays readable") {
  // Put together after docs/checkpoint-format.md by another program.
  const std::string bytes = from_hex(
      "89434c520d0a1a0a0100000004030201c0000000000000004800000000000000280100000000000000112233"
      "445566778899aabbccddeeff00000000f8aaa3220000c03f000000c000000000000000000000000000000000"
      "000000000000000000000000000000000000000000000000000000000000000000000000000000007b227374"
      "6570223a377d0000000000000000000000000000000000000000000000000000000000000000000000000000"
      "0000000000000000000000000000000080000000000000000a00000000000000010000000000000001010500"
      "0100000022a932a44000000000000000080000000000000002000000000000006d6f64656c77000000000000"
      "434c52456d1a3bd7280100000000000000112233445566778899aabbccddeeff");
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "v1.collar";
  write_bytes(path, bytes);
  const auto file = CheckpointFile::open(path);
  file.verify();
  CHECK(file.state() == json{{"step", 7}});
  CHECK(file.save_id() == "00112233445566778899aabbccddeeff");
  CHECK(file.tensor("model", "w").to_vector<float>() == std::vector<float>{1.5f, -2.0f});
}

TEST_CASE("A hostile table of contents with right checksums is refused") {
  namespace format = checkpoint_format;
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "hostile.collar";
  const std::string whole = small_file(folder.path());
  write_bytes(path, whole);
  const auto good = CheckpointFile::open(path);
  const auto bytes = std::as_bytes(std::span(whole));
  const format::Header header = format::decode_header(bytes.first(64), bytes.size(), "good");
  const format::Contents contents = format::decode_contents(
      bytes.subspan(header.contents_offset, header.contents_bytes), header, "good");

  const auto refuse = [&](auto&& change) {
    format::Contents changed = contents;
    change(changed);
    CHECK_THROWS_AS(format::decode_contents(format::encode(changed), header, "hostile"), FileError);
  };
  CHECK_NOTHROW(format::decode_contents(format::encode(contents), header, "good"));
  refuse([](format::Contents& c) { c.entries[1].offset = c.entries[0].offset; });
  refuse([](format::Contents& c) { c.entries[1].offset += 64; });
  refuse([](format::Contents& c) { std::swap(c.entries[0], c.entries[1]); });
  refuse([](format::Contents& c) { c.entries[0].bytes = 16; });
  refuse([](format::Contents& c) { c.entries[0].shape = {1, 4}; });
  refuse([](format::Contents& c) { c.entries[0].dtype = DType::f64; });
  refuse([](format::Contents& c) { c.entries[0] = c.entries[1]; });
  refuse([](format::Contents& c) { c.entries.pop_back(); });
  refuse([](format::Contents& c) { c.state_offset = 0; });
  refuse([](format::Contents& c) { c.state_bytes += 64; });
  refuse([](format::Contents& c) { c.state_bytes = ~std::uint64_t{0}; });
  refuse([](format::Contents& c) {
    c.entries[0].shape = {std::int64_t{1} << 62};
    c.entries[0].bytes = 0;  // 2^64, wrapped
  });

  RandomStream random({.seed = 5});
  const std::vector<std::byte> encoded = format::encode(contents);
  for (int round = 0; round < 20'000; ++round) {  // decoding decides; it never crashes
    std::vector<std::byte> mutated = encoded;
    for (std::uint32_t edits = 1 + random.below(3); edits > 0; --edits)
      mutated[random.below(static_cast<std::uint32_t>(mutated.size()))] =
          static_cast<std::byte>(random.next_u32());
    mutated.resize(mutated.size() - random.below(2) * random.below(40));
    try {
      format::decode_contents(mutated, header, "mutated");
    } catch (const FileError&) {
    }
  }
}

TEST_CASE("The state of a hostile file may not be nested without end") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "deep.collar";
  // The writer refuses such a state, so another text of its length is overwritten.
  const std::string deep = std::string(100, '[') + "1" + std::string(100, ']');
  write_checkpoint(path, {}, json(std::string(deep.size() - 2, 'x')));
  std::string bytes = bytes_of_file(path);
  const std::size_t state = bytes.find("\"xxx");
  bytes.replace(state, deep.size(), deep);
  constexpr std::size_t kFooter = 32;
  const std::uint32_t crc =
      crc32c(std::as_bytes(std::span(bytes).subspan(state, bytes.size() - kFooter - state)));
  std::memcpy(bytes.data() + bytes.size() - kFooter + 4, &crc, sizeof(crc));
  write_bytes(path, bytes);
  CHECK_THROWS_WITH(CheckpointFile::open(path).state(), Catch::Contains("nested deeper than 64"));
}

TEST_CASE("Dying while a checkpoint is written leaves the old one or the new one loadable") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "after.collar";
  const std::string old = small_file(folder.path());
  const auto old_bytes = std::as_bytes(std::span(old));
  const auto first_value = [&path](const test::FaultyFiles::Content& content) {
    write_bytes(path, {reinterpret_cast<const char*>(content.data()), content.size()});
    const auto file = CheckpointFile::open(path);
    file.verify();
    return file.tensor("model", "fc.weight").data<float>()[0];
  };
  int died = 0;
  for (int k = 1;; ++k) {
    auto files = std::make_shared<test::FaultyFiles>();
    files->put("run/c.collar", {old_bytes.begin(), old_bytes.end()});
    files->die_at = k;
    files->largest_write = 100;
    bool finished = true;
    try {
      write_checkpoint("run/c.collar", small_tensors(2), kState, files);
    } catch (const test::Died&) {
      finished = false;
      ++died;
    }
    INFO("died at operation " << k);
    const float seen = first_value(files->visible().at("run/c.collar"));
    CHECK((seen == 1.0f || seen == 2.0f));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      RandomStream random({.seed = seed, .epoch = static_cast<std::uint32_t>(k)});
      const float found = first_value(files->after_power_cut(random).at("run/c.collar"));
      CHECK((found == 1.0f || found == 2.0f));
      if (finished) CHECK(found == 2.0f);
    }
    if (finished) break;
  }
  CHECK(died >= 10);
}

TEST_CASE("A failing disk is an error of the save, and the old checkpoint stays") {
  for (const int error : {ENOSPC, EIO}) {
    auto files = std::make_shared<test::FaultyFiles>();
    files->put("run/c.collar", test::FaultyFiles::Content(10));
    files->fail_at = 4;
    files->error = error;
    CHECK_THROWS_AS(write_checkpoint("run/c.collar", small_tensors(2), kState, files), FileError);
    CHECK(files->visible().size() == 1);
    CHECK(files->visible().at("run/c.collar").size() == 10);
  }
}
