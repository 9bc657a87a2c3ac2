// SPDX-License-Identifier: Apache-2.0
#include "apps/machine.hpp"

#include <fmt/format.h>
#include <jconfig.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <cstdlib>
#include <fstream>

#include "apps/build_info.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "kernels/runtime/isa.hpp"

namespace collar::apps {
namespace {

using nlohmann::ordered_json;

/// The rest of the first line of the file that begins with `key`, without separators and quotes.
std::string value_in_file(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" \t:=\"", key.size());
    const auto end = line.find_last_not_of(" \t\"");
    return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
  }
  return "";
}

/// "0-3,8": the CPUs this process may run on.
std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return "unknown";
  std::string text;
  for (std::size_t first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    std::size_t last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text;
}

ordered_json memory() {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  ordered_json memory;
  memory["total_bytes"] = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  const std::string available = value_in_file("/proc/meminfo", "MemAvailable");
  if (!available.empty())
    memory["available_bytes"] = std::strtoull(available.c_str(), nullptr, 10) * 1024;
  const std::string limit = value_in_file("/sys/fs/cgroup/memory.max", "");
  if (!limit.empty() && limit != "max") {
    memory["limit_bytes"] = std::strtoull(limit.c_str(), nullptr, 10);
  }
  return memory;
}

ordered_json variables() {
  ordered_json found = ordered_json::object();
  for (const char* name :
       {"COLLAR_ISA", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "RANK", "WORLD_SIZE",
        "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) found[name] = value;
  }
  return found;
}

}  // namespace

ordered_json describe_machine() {
  const BuildInfo build = build_info();
  utsname system{};
  uname(&system);
  const std::string distribution = value_in_file("/etc/os-release", "PRETTY_NAME");
  const Isa isa = detect_isa();

  ordered_json report;
  report["collar"] = {{"version", build.version},
                      {"revision", build.revision},
                      {"compiler", build.compiler},
                      {"build_type", build.build_type},
                      {"sanitizers", build.sanitizers}};
  report["system"] = {{"distribution", distribution},
                      {"kernel", fmt::format("{} {}", system.sysname, system.release)},
                      {"machine", system.machine}};
  report["cpu"] = {{"model", value_in_file("/proc/cpuinfo", "model name")},
                   {"isa", name_of(isa)},
                   {"hardware_isa", name_of(hardware_isa())},
                   {"fast_bf16", isa == Isa::avx512_bf16},
                   {"online", sysconf(_SC_NPROCESSORS_ONLN)},
                   {"usable", available_cpus()},
                   {"affinity", affinity()}};
  report["memory"] = memory();
  report["libraries"] = {
      {"openmp", build.openmp},
      {"onednn", build.onednn},
      {"libjpeg_turbo", fmt::format("{}.{}.{}", LIBJPEG_TURBO_VERSION_NUMBER / 1000000,
                                    LIBJPEG_TURBO_VERSION_NUMBER / 1000 % 1000,
                                    LIBJPEG_TURBO_VERSION_NUMBER % 1000)},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                    NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"cli11", CLI11_VERSION},
      {"cuda", build.cuda},
      {"nccl", "off: it comes with the CUDA backend"}};
  report["variables"] = variables();
  return report;
}

std::string to_text(const ordered_json& environment) {
  std::string text;
  for (const auto& [section, entries] : environment.items()) {
    if (entries.empty()) continue;
    text += section + "\n";
    for (const auto& [name, value] : entries.items()) {
      std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
      std::string label = name;
      if (name.ends_with("_bytes")) {
        label = name.substr(0, name.size() - 6);
        shown = fmt::format("{:.1f} GiB", value.get<double>() / (1024.0 * 1024 * 1024));
      }
      if (!shown.empty()) text += fmt::format("  {:<16}{}\n", label, shown);
    }
  }
  return text;
}

}  // namespace collar::apps
