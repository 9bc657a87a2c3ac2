// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "engine/io/sha256.hpp"
#include "kernels/core/error.hpp"

namespace collar::comm {
namespace {

/// The names one family of launchers uses. `job` identifies the job where it has no address of its
/// own.
struct Family {
  std::string launcher;
  std::string rank, world_size, local_rank, local_world_size;
  std::vector<std::string> job;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}},
      {"Slurm",
       "SLURM_PROCID",
       "SLURM_NTASKS",
       "SLURM_LOCALID",
       "SLURM_NTASKS_PER_NODE",
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
      {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_PORT"}}};
  return all;
}

class Reader {
 public:
  explicit Reader(const Environment::Lookup& lookup) : lookup_(lookup) {}

  bool has(const std::string& variable) const { return lookup_(variable).has_value(); }
  std::optional<std::string> text(const std::string& variable) const { return lookup_(variable); }

  std::optional<int> number(const std::string& variable, int lowest, int highest) const {
    const auto value = lookup_(variable);
    if (!value) return std::nullopt;
    int result = 0;
    const char* end = value->data() + value->size();
    const auto [stop, error] = std::from_chars(value->data(), end, result);
    if (error != std::errc() || stop != end || value->empty() || result < lowest ||
        result > highest)
      throw UsageError(fmt::format("{}=\"{}\": expected a number from {} to {}", variable, *value,
                                   lowest, highest));
    return result;
  }

 private:
  const Environment::Lookup& lookup_;
};

/// A batch script runs inside a Slurm job but is no task of it: only srun makes ranks.
bool is_rank_of(const Family& family, const Reader& reader) {
  if (!reader.has(family.rank)) return false;
  if (family.launcher != "Slurm") return true;
  return reader.has(family.world_size) &&
         (reader.has("SLURM_STEP_ID") || !reader.has("SLURM_JOB_ID"));
}

/// torchrun's names are nobody else's: one of them alone is a mistake worth an error.
void check_no_half_job(const Reader& reader) {
  for (const char* variable : {"WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"})
    if (reader.has(variable))
      throw UsageError(
          fmt::format("{} is set, but RANK is not: set RANK and WORLD_SIZE (and MASTER_ADDR, "
                      "MASTER_PORT) for a "
                      "rank of a job, or none of them for a single process",
                      variable));
}

void read_ranks(const Family& family, const Reader& reader, Environment& environment) {
  const auto size = reader.number(family.world_size, 1, Environment::kMaxWorldSize);
  if (!size)
    throw UsageError(fmt::format("{} is set, but {} is not", family.rank, family.world_size));
  environment.launcher = family.launcher;
  environment.world_size = *size;
  environment.rank = *reader.number(family.rank, 0, *size - 1);
  const auto local_size = reader.number(family.local_world_size, 1, *size);
  environment.local_world_size = local_size.value_or(*size);
  environment.single_host = *size == 1 || local_size == size;
  const auto local_rank = reader.number(family.local_rank, 0, environment.local_world_size - 1);
  environment.local_rank = local_rank.value_or(environment.rank % environment.local_world_size);
  if (environment.local_world_size == *size && environment.local_rank != environment.rank)
    throw UsageError(
        fmt::format("{}={} and {}={} contradict each other for a job of one host; on several "
                    "hosts, {} says how "
                    "many of the {} ranks are on this one",
                    family.rank, environment.rank, family.local_rank, environment.local_rank,
                    family.local_world_size, *size));
}

/// Where no address is given, ranks of one host meet at a socket named after their job.
Endpoint meeting_point(const Family& family, const Reader& reader, const Environment& environment) {
  std::string job;
  for (const std::string& variable : family.job) job += reader.text(variable).value_or("") + "/";
  const bool known = job.size() > family.job.size();  // more than the separators
  if (!known || !environment.single_host)
    throw UsageError(fmt::format(
        "this is rank {} of {} ({}), but MASTER_ADDR and MASTER_PORT are not set: they say where "
        "rank 0 waits for the others",
        environment.rank, environment.world_size, family.launcher));
  const std::string name = fmt::format("{}/{}/{}", family.launcher, ::getuid(), job);
  return {"@collar-" + to_hex(sha256(name)).substr(0, 32), 0};
}

Endpoint store_of(const Family& family, const Reader& reader, const Environment& environment) {
  const auto address = reader.text("MASTER_ADDR");
  const auto port = reader.number("MASTER_PORT", 1, 65535);
  if (!address && !port) return meeting_point(family, reader, environment);
  if (!address || address->empty())
    throw UsageError("MASTER_PORT is set, but MASTER_ADDR is not: the host where rank 0 runs");
  if (!port)
    throw UsageError("MASTER_ADDR is set, but MASTER_PORT is not: the port where rank 0 listens");
  // torchrun's own agent may hold the port it announces; its neighbour is ours then.
  const bool taken = reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (taken && *port == 65535)
    throw UsageError("MASTER_PORT=65535: torchrun's agent holds it, and there is no next one");
  return {*address, static_cast<std::uint16_t>(*port + (taken ? 1 : 0))};
}

}  // namespace

Environment Environment::from_variables(const Lookup& lookup) {
  const Reader reader(lookup);
  Environment environment;
  environment.job_token = reader.text("COLLAR_JOB_TOKEN").value_or("");
  for (const Family& family : families()) {
    if (!is_rank_of(family, reader)) {
      if (&family == &families().front()) check_no_half_job(reader);
      continue;
    }
    read_ranks(family, reader, environment);
    if (environment.world_size > 1) environment.store = store_of(family, reader, environment);
    return environment;
  }
  return environment;
}

Environment Environment::from_process() {
  return from_variables([](const std::string& variable) -> std::optional<std::string> {
    const char* value = std::getenv(variable.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace collar::comm
