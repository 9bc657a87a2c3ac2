// SPDX-License-Identifier: Apache-2.0
// How many images a second does the loader make, by number of workers and by transform?
//   bench_loader DIR [images]   (default: as many as there are in DIR, each once, after a warm-up
//   pass)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <vector>

#include "data/data.hpp"

using namespace collar;

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Images per second of one pass.
double measure(const data::Dataset& dataset, int workers) {
  data::DataLoader loader(dataset, {.batch_size = 32, .workers = workers});
  const double start = seconds();
  std::int64_t images = 0;
  for (const data::Batch& batch : loader) images += batch.rows();
  return static_cast<double>(images) / (seconds() - start);
}

void print_rates(const char* what, const data::Dataset& dataset) {
  measure(dataset, available_cpus());  // files into the page cache
  fmt::print("{:<44}", what);
  std::vector<int> worker_counts{0, 1};
  for (int workers = 2; workers <= available_cpus(); workers *= 2) worker_counts.push_back(workers);
  for (const int workers : worker_counts)
    fmt::print("  {} workers {:7.0f}", workers, measure(dataset, workers));
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} DIR [images]\n", argv[0]);
    return 2;
  }
  data::LabelledFiles files = data::open_folder(argv[1]).train;
  if (argc > 2)
    files.files.resize(
        std::min<std::size_t>(files.files.size(), std::strtoul(argv[2], nullptr, 10)));
  fmt::print("{} images of {}, 224 x 224, images per second on {} CPUs\n", files.files.size(),
             argv[1], available_cpus());
  const auto article = data::Preprocessing::of(data::TransformPreset::article);
  const auto timm = data::Preprocessing::of(data::TransformPreset::timm);
  print_rates("article: decode, resize, to float", data::ImageFiles(files, article.train()));
  print_rates("timm, training: random crop, flip, normalise",
              data::ImageFiles(files, timm.train()));
  print_rates("timm, evaluation: resize, crop, normalise", data::ImageFiles(files, timm.eval()));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
