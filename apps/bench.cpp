// SPDX-License-Identifier: Apache-2.0
// `collar bench`: what this machine makes of Collar, one verb a question.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "apps/accelerate/json_text.hpp"
#include "apps/bench/step.hpp"
#include "apps/train/recipe.hpp"
#include "apps/verbs.hpp"
#include "comm/rendezvous/environment.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

struct StepCommand {
  bench::StepOptions step;
  std::string json;
};

/// Before minutes are spent on what could not be kept.
void require_writable(const std::string& path) {
  if (!std::ofstream(path, std::ios::app))
    throw UsageError(fmt::format("--json {}: {}", path, std::strerror(errno)));
}

void write_json(const std::string& path, const nlohmann::ordered_json& json) {
  std::ofstream file(path, std::ios::binary);
  file << json_text(json, 2) << "\n";
  file.close();
  if (!file) throw UsageError(fmt::format("--json {}: {}", path, std::strerror(errno)));
}

ExitCode run_step(const StepCommand& command) {
  require_values_to_normalise("a batch", command.step.batch_size, command.step.img_size);
  const bool first_rank = comm::Environment::from_process().rank == 0;
  if (first_rank && !command.json.empty()) require_writable(command.json);
  const bench::StepMeasurement measured = bench::measure_step(command.step);
  if (!first_rank) return ExitCode::done;
  fmt::print("{}", bench::to_text(command.step, measured));
  if (!command.json.empty()) write_json(command.json, bench::to_json(command.step, measured));
  return ExitCode::done;
}

/// Adds `collar bench step` and returns what it does.
Verb add_step(CLI::App& bench) {
  CLI::App* command =
      add_command(bench, "step",
                  "Time training steps, and the convolutions of the same model alone, in one run");
  const auto options = std::make_shared<StepCommand>();
  bench::StepOptions& step = options->step;
  const auto number = [&](const char* flags, int& value, int least, int most, const char* help) {
    command->add_option(flags, value, help)
        ->type_name("N")
        ->check(CLI::Range(least, most).description(""))
        ->capture_default_str();
  };
  const auto choice = [&](const char* flags, std::string& value, std::vector<std::string> values,
                          const char* help) {
    command->add_option(flags, value, help)
        ->type_name(fmt::format("{}", fmt::join(values, "|")))
        ->check(CLI::IsMember(values).description(""))
        ->capture_default_str();
  };
  command->add_option("--model", step.model, "By timm's name")
      ->type_name("NAME")
      ->capture_default_str();
  number("--img-size", step.img_size, 32, 4096, "Height and width of the images, pixels");
  number("-b,--batch-size", step.batch_size, 1, 65536, "Images of each process");
  number("--num-classes", step.num_classes, 1, 1 << 20, "Of the classifier");
  choice("--freeze", step.freeze, {"none", "backbone"}, "What is not trained");
  choice("--precision", step.precision, {"f32", "bf16"}, "Of convolutions and linear layers");
  number("--threads", step.threads, 0, 1024,
         "Threads that compute; 0: this process's share of the CPUs");
  number("--steps", step.steps, 1, 1 << 20, "Timed steps, after those that warm up");
  command->add_option("--json", options->json, "Also write the figures to a file")
      ->type_name("FILE");
  command->footer(
      "Random images, AdamW, batch normalisation with the batch's statistics. Steps and "
      "convolutions\n"
      "take turns, so that their ratio holds on a machine that has other work.");
  return {command, [options] { return run_step(*options); }};
}

}  // namespace

Verb add_bench(CLI::App& program) {
  CLI::App* bench = add_command(program, "bench", "Measure speed");
  bench->require_subcommand(1);
  const auto verbs = std::make_shared<std::vector<Verb>>();
  verbs->push_back(add_step(*bench));
  return {bench, [verbs] {
            for (const Verb& verb : *verbs) {
              if (verb.command->parsed()) return verb.run();
            }
            throw Error("no benchmark was chosen");
          }};
}

}  // namespace collar::apps
