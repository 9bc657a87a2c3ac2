// SPDX-License-Identifier: Apache-2.0
// `collar data synth`: a folder of toy pet photos to try everything on.
#include <fmt/format.h>

#include <memory>

#include "apps/counted.hpp"
#include "apps/synth/breed.hpp"
#include "apps/synth/pet_folder.hpp"
#include "apps/verbs.hpp"
#include "kernels/core/error.hpp"

namespace collar::apps {
namespace {

struct SynthOptions {
  std::string folder;
  synth::PetFolderOptions photos;
};

ExitCode run_synth(const SynthOptions& options) {
  if (options.folder.empty()) throw UsageError("data synth: which folder? DIR is empty");
  const synth::PetFolder made = synth::write_pet_folder(options.folder, options.photos);
  fmt::print("{} of {} in {} ({:.1f} MB): {}\n", counted(made.photos, "photo"),
             counted(std::ssize(made.classes), "breed"), options.folder,
             static_cast<double>(made.bytes) * 1e-6, fmt::join(made.classes, ", "));
  return ExitCode::done;
}

}  // namespace

Verb add_data(CLI::App& program) {
  CLI::App* data = add_command(program, "data", "Make image folders");
  data->require_subcommand(1);
  CLI::App* synth = add_command(*data, "synth",
                                "Draw a folder of toy pet photos: train/BREED/, valid/BREED/. The "
                                "same seed gives the same files on every machine.");
  const auto options = std::make_shared<SynthOptions>();
  synth->add_option("DIR", options->folder, "The folder to make")->required();
  synth
      ->add_option("--classes", options->photos.classes,
                   fmt::format("Breeds, 1 to {}", synth::kBreeds))
      ->type_name("N")
      ->capture_default_str();
  synth->add_option("--train", options->photos.train, "Photos of each breed to train on")
      ->type_name("N")
      ->capture_default_str();
  synth->add_option("--valid", options->photos.valid, "Photos of each breed to validate on")
      ->type_name("N")
      ->capture_default_str();
  synth->add_option("--seed", options->photos.seed, "Which photos")
      ->type_name("N")
      ->check([](const std::string& text) {  // CLI11 would take 2^64 - 1 for -1
        return text.starts_with('-')
                   ? fmt::format("expected a whole number of at least 0, got \"{}\"", text)
                   : "";
      })
      ->capture_default_str();
  synth->add_flag("--force", options->photos.force,
                  "Write into a folder that is not empty, replacing files of the same names");
  return {data, [options] { return run_synth(*options); }};
}

}  // namespace collar::apps
