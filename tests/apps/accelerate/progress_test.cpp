// SPDX-License-Identifier: Apache-2.0
#include "apps/accelerate/progress.hpp"

#include <catch2/catch.hpp>

#include "apps/accelerate/printable.hpp"
#include "tests/apps/support/program.hpp"

using namespace collar::apps;
using collar::test::read_text;
using collar::test::TemporaryDirectory;
using namespace std::chrono_literals;

namespace {

/// A run of 2 epochs of 50 steps that takes 20 ms a step, and what it shows.
std::string show_run(ProgressOptions options, std::int64_t until = 100) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "screen";
  options.descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::chrono::steady_clock::time_point clock{};
  options.now = [&clock] { return clock; };
  {
    Progress progress(options);
    for (std::int64_t i = 1; i <= until; ++i) {
      clock += 20ms;
      progress.step({.epoch = i <= 50 ? 1 : 2,
                     .epochs = 2,
                     .step = (i - 1) % 50 + 1,
                     .steps = 50,
                     .total_step = i,
                     .total_steps = 100,
                     .loss = 1.5,
                     .lr = 0.03,
                     .images_per_second = 12.34,
                     .data_wait = 0.042,
                     .logged = i == 1 || i % 10 == 0});
      if (i == 50) progress.line("epoch 1/2\ndone \x1b[31m");
    }
  }
  close(options.descriptor);
  return read_text(path);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("Without a terminal there is a plain line for every step that is logged") {
  const std::string text = show_run({});
  CHECK_THAT(text, Catch::StartsWith("epoch 1/2  step 1/50  loss 1.5000  lr 0.03  12.3 img/s  data "
                                     "4%\nepoch 1/2  step 10/50"));
  CHECK(count(text, "\n") == 13);  // 1, 10 … 100 and the epoch's two
  CHECK(count(text, "\r") == 0);
  CHECK_THAT(text,
             Catch::Contains("step 50/50  loss 1.5000  lr 0.03  12.3 img/s  data 4%  0:01 left"));
}

TEST_CASE("On a terminal one line is redrawn at most ten times a second") {
  const std::string text = show_run({.bar = true, .columns = 100});
  CHECK(count(text, "img/s") >= 20);
  CHECK(count(text, "img/s") <= 22);  // 2 seconds, and the last step
  CHECK(count(text, "\n") == 2);      // the epoch's lines
  CHECK(count(text, "\x1b[36m") == 0);
  CHECK_THAT(text, Catch::Contains("[==========] 50/50"));
  CHECK_THAT(text, Catch::EndsWith("\r\x1b[K"));
}

TEST_CASE("The bar fits the terminal and is coloured only if wanted") {
  const std::string narrow = show_run({.bar = true, .columns = 40}, 30);
  std::istringstream redraws(narrow);
  for (std::string line; std::getline(redraws, line, '\r');) CHECK(line.size() <= 39 + 3);
  CHECK_THAT(show_run({.bar = true, .color = true, .columns = 100}, 30),
             Catch::Contains("\x1b[36m=") && Catch::Contains("\x1b[0m] "));
}

TEST_CASE("All that there is to say fits into 80 columns") {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "screen";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::chrono::steady_clock::time_point clock{};
  Progress progress({.descriptor = file, .bar = true, .columns = 80, .now = [&] { return clock; }});
  for (int step : {114, 115}) {
    clock += 740ms;
    progress.step({.epoch = 10,
                   .epochs = 20,
                   .step = step,
                   .steps = 115,
                   .total_step = step + 1035,
                   .total_steps = 2300,
                   .loss = 1.5,
                   .lr = 0.0285,
                   .images_per_second = 123.4,
                   .data_wait = 0.042});
  }
  const std::string text = read_text(path);
  CHECK_THAT(text,
             Catch::EndsWith("] 115/115 loss 1.5000 lr 0.0285 123.4 img/s data 4% 14:11 left"));
  CHECK(text.size() - text.rfind('\r') - 4 <= 79);
  progress.clear();
  close(file);
}

TEST_CASE("A bar is for terminals that can redraw") {
  const TemporaryDirectory folder;
  const int file = open((folder.path() / "f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  CHECK_FALSE(wants_bar(file, false));
  close(file);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) COLLAR_SKIP("no pseudo terminals here");
  REQUIRE(setenv("TERM", "xterm", 1) == 0);
  REQUIRE(unsetenv("NO_COLOR") == 0);
  CHECK(wants_bar(terminal, false));
  CHECK(wants_color(terminal, false));
  CHECK_FALSE(wants_bar(terminal, true));
  setenv("NO_COLOR", "1", 1);
  CHECK(wants_bar(terminal, false));
  CHECK_FALSE(wants_color(terminal, false));
  setenv("TERM", "dumb", 1);
  CHECK_FALSE(wants_bar(terminal, false));
  unsetenv("NO_COLOR");
  close(terminal);
}

TEST_CASE("Names cannot steer the terminal") {
  CHECK(printable("a\x1b[2Jb\x07\nMüsli\t\x7f") == "a\\x1b[2Jb\\x07\\x0aMüsli\t\\x7f");
  CHECK_THAT(show_run({}), Catch::Contains("done \\x1b[31m\n"));
}

TEST_CASE("A screen that is gone does not stop the run") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_IGN);
  Progress progress({.descriptor = ends[1]});
  CHECK_NOTHROW(progress.step({.total_step = 1}));
  signal(SIGPIPE, SIG_DFL);
  close(ends[1]);
}

TEST_CASE("Times are written as clocks write them") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(-5) == "0:00");
}
