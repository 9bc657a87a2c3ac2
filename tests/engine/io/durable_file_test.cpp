// SPDX-License-Identifier: Apache-2.0
#include "engine/io/durable_file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "engine/io/input_file.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/faulty_files.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using test::FaultyFiles;

namespace {

using Content = FaultyFiles::Content;

Content filled(std::size_t size, int value) {
  return Content(size, static_cast<std::byte>(value));
}

// Larger than the buffer, so that pieces are written before the end; not a multiple of a sector.
const Content kOld = filled(3000, 1);
const Content kNew = filled(150'001, 2);

std::shared_ptr<FaultyFiles> disk_with_old_file() {
  auto files = std::make_shared<FaultyFiles>();
  files->put("run/state", kOld);
  return files;
}

void save(const std::shared_ptr<FaultyFiles>& files) {
  DurableFile file("run/state", kNew.size(), files);
  const std::span<const std::byte> content(kNew);
  file.write(content.first(100));
  file.write(content.subspan(100, 70'000));
  file.write(content.subspan(70'100));
  file.commit();
}

bool is_old_or_new(const FaultyFiles::Tree& tree) {
  const Content& found = tree.at("run/state");
  return found == kOld || found == kNew;
}

}  // namespace

TEST_CASE("A durable file appears under its name when it is committed, and only then") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "state";
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
  };
  write_durably(path, kOld);
  CHECK(read_text(path, 1 << 20).size() == kOld.size());
  {
    DurableFile file(path, kNew.size());
    file.write(kNew);
    CHECK(count() == 2);
    CHECK(std::filesystem::file_size(path) == kOld.size());
  }  // not committed
  CHECK(count() == 1);
  CHECK(std::filesystem::file_size(path) == kOld.size());
  write_durably(path, kNew);
  CHECK(read_text(path, 1 << 20) == std::string(kNew.size(), '\2'));
  write_durably(path, {});
  CHECK(std::filesystem::file_size(path) == 0);
  CHECK(count() == 1);
}

TEST_CASE("A durable file holds exactly the bytes announced") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "state";
  DurableFile file(path, 10);
  CHECK_THROWS_AS(file.write(filled(11, 0)), FileError);
  file.write(filled(9, 0));
  CHECK_THROWS_AS(file.commit(), FileError);
  CHECK_THROWS_AS(file.write(filled(2, 0)), FileError);
  file.write(filled(1, 0));
  file.commit();
  CHECK(std::filesystem::file_size(path) == 10);
  CHECK_THROWS_AS(DurableFile(folder.path() / "no" / "such", 1), FileError);
  CHECK_THROWS_AS(DurableFile(folder.path() / "", 1), FileError);
}

TEST_CASE("Short and interrupted writes are completed") {
  const auto files = disk_with_old_file();
  files->largest_write = 1000;
  files->interrupting = true;
  save(files);
  CHECK(files->visible() == FaultyFiles::Tree{{"run/state", kNew}});
  CHECK(files->open_descriptors() == 0);
}

TEST_CASE("An operation that fails leaves the old file, no temporary and no descriptor") {
  int operations = 0;
  {
    const auto files = disk_with_old_file();
    save(files);
    operations = files->operations();
  }
  REQUIRE(operations >= 8);
  for (int k = 1; k <= operations; ++k) {
    for (const int error : {EIO, ENOSPC}) {
      const auto files = disk_with_old_file();
      files->fail_at = k;
      files->error = error;
      INFO("operation " << k << " of " << operations << ", errno " << error);
      if (k == operations) {  // closing the folder: all is done
        CHECK_NOTHROW(save(files));
      } else {
        CHECK_THROWS_AS(save(files), FileError);
      }
      const bool renamed = k >= operations - 1;
      CHECK(files->visible() == FaultyFiles::Tree{{"run/state", renamed ? kNew : kOld}});
      CHECK(files->open_descriptors() == 0);
    }
  }
}

TEST_CASE("A full disk is reported with path, need and free bytes, before anything is written") {
  const auto files = disk_with_old_file();
  files->fail_at = 3;
  files->error = ENOSPC;
  CHECK_THROWS_WITH(DurableFile("run/state", 999, files),
                    Catch::Contains("run/state") && Catch::Contains("No space left on device") &&
                        Catch::Contains("needs 999 bytes") && Catch::Contains("12345 are free"));

  SECTION("a file system that cannot reserve is no reason to fail") {
    const auto simple = disk_with_old_file();
    simple->fail_at = 3;
    simple->error = EOPNOTSUPP;
    save(simple);
    CHECK(simple->visible().at("run/state") == kNew);
  }
}

TEST_CASE("Dying at any operation leaves the old file or the new one, also after a power cut") {
  for (int k = 1;; ++k) {
    const auto files = disk_with_old_file();
    files->die_at = k;
    bool died = false;
    try {
      save(files);
    } catch (const test::Died&) {
      died = true;
    }
    INFO("died at operation " << k);
    CHECK(is_old_or_new(files->visible()));
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      RandomStream random({.seed = seed, .epoch = static_cast<std::uint32_t>(k)});
      CHECK(is_old_or_new(files->after_power_cut(random)));
    }
    if (!died) {
      RandomStream random({});
      CHECK(files->after_power_cut(random).at("run/state") == kNew);  // what was promised
      break;
    }
  }
}

TEST_CASE("The model of the disk notices a forgotten fsync") {
  const auto files = disk_with_old_file();
  const int folder = files->open_folder("run");
  const int file = files->create("run/new");
  files->write(file, kNew);
  files->close(file);
  files->rename("run/new", "run/state");
  files->sync(folder);
  int broken = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random({.seed = seed});
    if (!is_old_or_new(files->after_power_cut(random))) ++broken;
  }
  CHECK(broken > 0);
}

TEST_CASE("Reads are whole or an error") {
  test::TemporaryDirectory folder;
  const auto path = folder.path() / "ten";
  std::ofstream(path) << "0123456789";
  const InputFile file(path);
  CHECK(file.size() == 10);
  CHECK(file.read_text_at(3, 4) == "3456");
  CHECK(file.read_text_at(10, 0).empty());
  CHECK_THROWS_AS(file.read_text_at(3, 8), FileError);
  CHECK_THROWS_AS(file.read_text_at(11, 0), FileError);
  CHECK_THROWS_AS(file.read_text_at(5, ~std::uint64_t{0}), FileError);
  CHECK(read_text(path, 10) == "0123456789");
  CHECK_THROWS_WITH(read_text(path, 9), Catch::Contains("has 10 bytes, expected at most 9"));

  std::filesystem::resize_file(path, 5);
  CHECK_THROWS_WITH(file.read_text_at(0, 10), Catch::Contains("ends at byte 5"));
}

TEST_CASE("Only regular files are read, and nothing waits") {
  test::TemporaryDirectory folder;
  CHECK_THROWS_WITH(InputFile(folder.path()), Catch::Contains("is a folder"));
  CHECK_THROWS_WITH(InputFile(folder.path() / "none"), Catch::Contains("No such file"));
  const auto fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(fifo), Catch::Contains("not a regular file"));
}
