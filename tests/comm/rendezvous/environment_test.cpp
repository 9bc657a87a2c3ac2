// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, from the variables of each launcher; and what half a job is told.
#include "comm/rendezvous/environment.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "kernels/core/error.hpp"

using namespace collar;
using comm::Endpoint;
using comm::Environment;

namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return Environment::from_variables([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node7"},
                             {"MASTER_PORT", "29500"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

}  // namespace

TEST_CASE("No variable at all is a job of one process") {
  const Environment alone = read({{"HOME", "/root"}, {"SLURM_CONF", "/etc/slurm.conf"}});
  CHECK(alone.rank == 0);
  CHECK(alone.world_size == 1);
  CHECK(alone.single_host);
  CHECK(alone.launcher.empty());
}

TEST_CASE("torchrun's variables are read as torch reads them") {
  const Environment e = read(with(kTorchrun, "COLLAR_JOB_TOKEN", "secret"));
  CHECK(e.rank == 3);
  CHECK(e.world_size == 4);
  CHECK(e.local_rank == 1);
  CHECK(e.local_world_size == 2);
  CHECK_FALSE(e.single_host);
  CHECK(e.store == Endpoint{"node7", 29500});
  CHECK(e.job_token == "secret");
  // torchrun's agent listens on the port itself
  CHECK(read(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).store.port == 29501);
}

TEST_CASE("The local variables may be left out") {
  const Environment e =
      read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29500"}});
  CHECK(e.local_rank == 1);
  CHECK(e.local_world_size == 2);
  CHECK_FALSE(e.single_host);  // not known
  CHECK(to_string(e.store) == "[::1]:29500");
  CHECK(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).world_size == 1);  // needs no address
}

TEST_CASE("mpirun, srun and PMI name their ranks in their own ways") {
  const Environment mpi = read({{"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                {"PMIX_NAMESPACE", "2893348865"}});
  CHECK(mpi.rank == 2);
  CHECK(mpi.launcher == "Open MPI");
  CHECK(mpi.store.is_unix());  // ranks of one host meet without an address

  const Variables srun = {{"SLURM_PROCID", "1"},     {"SLURM_NTASKS", "2"},
                          {"SLURM_LOCALID", "0"},    {"SLURM_NTASKS_PER_NODE", "1"},
                          {"SLURM_JOB_ID", "12"},    {"SLURM_STEP_ID", "0"},
                          {"MASTER_ADDR", "node-a"}, {"MASTER_PORT", "4000"}};
  CHECK(read(srun).rank == 1);
  CHECK(read(srun).local_rank == 0);
  CHECK(read(srun).store == Endpoint{"node-a", 4000});
  CHECK(read(without(srun, "SLURM_STEP_ID")).world_size == 1);  // a batch script is no rank

  const Environment pmi = read({{"PMI_RANK", "0"},
                                {"PMI_SIZE", "2"},
                                {"MPI_LOCALRANKID", "0"},
                                {"MPI_LOCALNRANKS", "2"},
                                {"MASTER_ADDR", "127.0.0.1"},
                                {"MASTER_PORT", "4000"}});
  CHECK(pmi.world_size == 2);
  CHECK(pmi.single_host);
}

TEST_CASE("RANK decides where several launchers are nested") {
  Variables nested = kTorchrun;
  nested.insert({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  CHECK(read(nested).rank == 3);
}

TEST_CASE("Two jobs of mpirun on one host do not meet") {
  const auto job = [](const std::string& name) {
    return read({{"OMPI_COMM_WORLD_RANK", "0"},
                 {"OMPI_COMM_WORLD_SIZE", "2"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                 {"PMIX_NAMESPACE", name}})
        .store;
  };
  CHECK(job("1") == job("1"));
  CHECK_FALSE(job("1") == job("2"));
}

TEST_CASE("Half a job is refused, and the variable is named") {
  CHECK_THAT(refusal({{"WORLD_SIZE", "2"}}),
             Catch::StartsWith("WORLD_SIZE is set, but RANK is not"));
  CHECK_THAT(refusal({{"LOCAL_RANK", "0"}}),
             Catch::StartsWith("LOCAL_RANK is set, but RANK is not"));
  CHECK_THAT(refusal(without(kTorchrun, "WORLD_SIZE")),
             Catch::StartsWith("RANK is set, but WORLD_SIZE is not"));
  CHECK_THAT(refusal(without(kTorchrun, "MASTER_PORT")),
             Catch::StartsWith("MASTER_ADDR is set, but MASTER_PORT is not"));
  CHECK_THAT(refusal(without(kTorchrun, "MASTER_ADDR")),
             Catch::StartsWith("MASTER_PORT is set, but MASTER_ADDR is not"));
  CHECK_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
             Catch::Contains("MASTER_ADDR and MASTER_PORT are not set"));
}

TEST_CASE("Values that are no numbers, out of range or contradict each other are refused") {
  CHECK(refusal(with(kTorchrun, "RANK", "4")) == "RANK=\"4\": expected a number from 0 to 3");
  CHECK(refusal(with(kTorchrun, "RANK", "-1")) == "RANK=\"-1\": expected a number from 0 to 3");
  for (const char* bad : {"", " 3", "3 ", "3x", "0x1", "1e0", "99999999999999999999"})
    CHECK_THAT(refusal(with(kTorchrun, "RANK", bad)), Catch::StartsWith("RANK="));
  CHECK_THAT(refusal(with(kTorchrun, "WORLD_SIZE", "0")), Catch::StartsWith("WORLD_SIZE="));
  CHECK_THAT(refusal(with(kTorchrun, "WORLD_SIZE", "5000")), Catch::Contains("to 1024"));
  CHECK_THAT(refusal(with(kTorchrun, "LOCAL_RANK", "2")), Catch::StartsWith("LOCAL_RANK="));
  CHECK_THAT(refusal(with(kTorchrun, "LOCAL_WORLD_SIZE", "5")),
             Catch::StartsWith("LOCAL_WORLD_SIZE="));
  CHECK_THAT(refusal(with(kTorchrun, "MASTER_PORT", "65536")), Catch::StartsWith("MASTER_PORT="));
  CHECK_THAT(refusal(with(kTorchrun, "MASTER_ADDR", "")), Catch::Contains("MASTER_ADDR"));
  CHECK_THAT(refusal(with(kTorchrun, "LOCAL_WORLD_SIZE", "4")),
             Catch::Contains("RANK=3 and LOCAL_RANK=1 contradict each other"));
}
