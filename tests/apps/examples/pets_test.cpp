// SPDX-License-Identifier: Apache-2.0
// The article's program, run as its reader would: alone, and as two ranks.
#include <catch2/catch.hpp>
#include <regex>

#include "apps/synth/pet_folder.hpp"
#include "tests/apps/support/program.hpp"

using collar::test::Finished;
using collar::test::RunningProgram;

namespace {

/// Photos for two epochs of 6 batches of 8 on one rank, 3 on two.
class Pets {
 public:
  Pets() {
    collar::apps::synth::write_pet_folder(folder_.path(),
                                          {.classes = 3, .train = 16, .valid = 2, .seed = 1});
  }
  /// What the program prints, on lines of `ranks` processes.
  std::string run(int ranks) const {
    std::vector<std::string> command{EXAMPLE_PETS, folder_.path(), "--model", "resnet18d", "--size",
                                     "32",         "--batch-size", "4",       "--epochs",  "2"};
    if (ranks > 1) {
      const std::vector<std::string> launch{COLLAR_PROGRAM, "launch", "-n", std::to_string(ranks)};
      command.insert(command.begin(), launch.begin(), launch.end());
    }
    const Finished finished = RunningProgram(command).wait();
    INFO(finished.err);
    REQUIRE(finished.code == 0);
    return finished.out;
  }

 private:
  collar::test::TemporaryDirectory folder_;
};

}  // namespace

TEST_CASE("The article's program trains on one rank and on two") {
  const Pets pets;
  const std::regex one_epoch(
      R"(Epoch \[1/2\], Step \[10/12\], Loss: \d+\.\d{4}\n)"
      R"(Epoch \[1/2\], Validation Accuracy: [01]\.\d{4}, Elapsed Time: \d+\.\d\d\n)"
      R"(Epoch \[2/2\], Step \[10/12\], Loss: \d+\.\d{4}\n)"
      R"(Epoch \[2/2\], Validation Accuracy: [01]\.\d{4}, Elapsed Time: \d+\.\d\d\n)");
  const std::string alone = pets.run(1);
  CAPTURE(alone);
  CHECK(std::regex_match(alone, one_epoch));
  // Six steps an epoch, none of them a tenth; one rank speaks for both.
  const std::regex two_lines(
      R"(Epoch \[1/2\], Validation Accuracy: [01]\.\d{4}, Elapsed Time: \d+\.\d\d\n)"
      R"(Epoch \[2/2\], Validation Accuracy: [01]\.\d{4}, Elapsed Time: \d+\.\d\d\n)");
  const std::string together = pets.run(2);
  CAPTURE(together);
  CHECK(std::regex_match(together, two_lines));
}
