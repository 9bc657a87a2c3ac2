// SPDX-License-Identifier: Apache-2.0
#include "apps/toml.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "kernels/core/error.hpp"
#include "tests/apps/support/program.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/mutation.hpp"

using namespace collar::apps;
using collar::UsageError;

TEST_CASE("Strings, numbers, booleans, arrays and comments are read") {
  const auto entries = parse_toml(
      "# a run\r\n"
      "model = \"resnet50d\"  # as timm names it\n"
      "\n"
      "lr=3e-2\n"
      "  force = true\n"
      "mean = [0.485, 0.456,0.406,]\n"
      "std = []\n"
      "path = 'C:\\photos'\n"
      "note = \"a \\\"b\\\" \\\\ \\n # c\"",
      "x.toml");
  REQUIRE(entries.size() == 7);
  CHECK(entries[0].key == "model");
  CHECK(entries[0].value == "resnet50d");
  CHECK(entries[0].line == 2);
  CHECK(entries[1].value == "3e-2");
  CHECK(entries[2].value == "true");
  CHECK(entries[3].value == "0.485,0.456,0.406");
  CHECK(entries[4].value.empty());
  CHECK(entries[5].value == "C:\\photos");
  CHECK(entries[6].value == "a \"b\" \\ \n # c");
}

TEST_CASE("What is written as a string is read as the same string") {
  for (const std::string text :
       {"", "plain", "it's", "\"quoted\"", "back\\slash\n\ttab", "Müsli"}) {
    CHECK(parse_toml("k = " + toml_string(text), "x").at(0).value == text);
  }
}

TEST_CASE("Errors name the file and the line") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_toml(text, "run.toml");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(message("a = 1\n[train]\n"), Catch::StartsWith("run.toml:2: tables"));
  CHECK_THAT(message("a = 1\na = 2"), Catch::StartsWith("run.toml:2: a is given a second time"));
  CHECK_THAT(message("a 1"), Catch::StartsWith("run.toml:1: expected '='"));
  CHECK_THAT(message("a = "), Catch::StartsWith("run.toml:1: expected a value"));
  CHECK_THAT(message("a = \"x"), Catch::Contains("closing \""));
  CHECK_THAT(message("a = \"x\\q\""), Catch::Contains("unknown escape \\q"));
  CHECK_THAT(message("a = [1, 2"), Catch::Contains("expected ','"));
  CHECK_THAT(message("a = 1 2"), Catch::Contains("nothing may follow"));
  CHECK_THAT(message("= 1"), Catch::Contains("expected a key"));
}

TEST_CASE("Mutated files are read or refused, and nothing else") {
  const std::string original =
      "model = \"resnet50d\"  # as timm names it\nlr = 3e-2\nforce = true\nmean = [0.485, 0.456]\n"
      "path = 'C:\\photos'\nnote = \"a \\\"b\\\" \\\\ \\n\"\n";
  collar::RandomStream random({.seed = 1, .purpose = collar::Purpose::test});
  const int rounds = collar::test::rounds(3'000, 300'000);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = collar::test::mutated(original, "\"'\\=[],#\n\r\t .eE-+0u", random);
    try {
      parse_toml(text, "x.toml");
    } catch (const UsageError&) {
      ++refused;
    }
  }
  CHECK(refused > rounds / 10);
  CHECK(refused < rounds);
}

TEST_CASE("A file that is missing, a folder, a pipe or too long is refused") {
  const collar::test::TemporaryDirectory folder;
  CHECK_THROWS_WITH(read_toml((folder.path() / "none.toml").string()),
                    Catch::Contains("No such file"));
  CHECK_THROWS_AS(read_toml(folder.path().string()), UsageError);
  collar::test::write_text(folder.path() / "long.toml", std::string(2 << 20, '#'));
  CHECK_THROWS_WITH(read_toml((folder.path() / "long.toml").string()),
                    Catch::Contains("at most 1048576"));
  REQUIRE(mkfifo((folder.path() / "pipe.toml").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_toml((folder.path() / "pipe.toml").string()),
                    Catch::Contains("not a regular file"));
  collar::test::write_text(folder.path() / "good.toml", "\xEF\xBB\xBFlr = 0.5\n");
  CHECK(read_toml((folder.path() / "good.toml").string()).at(0).value == "0.5");
}
