// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes: they sum, and when one of them is killed, stopped, leaves or disagrees,
// all others hear the same reason within two seconds.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>
#include <thread>

#include "comm/rendezvous/socket.hpp"
#include "tests/comm/support/collective_checks.hpp"
#include "tests/comm/support/processes_as_ranks.hpp"

using namespace collar;
using Catch::Matchers::Contains;
using test::Job;

namespace {

/// The text after "lost at SECONDS: ", and the seconds.
struct Loss {
  double when = 0;
  std::string reason;
};

Loss loss_of(const std::string& output) {
  std::smatch match;
  if (!std::regex_search(output, match, std::regex("lost at ([0-9.]+): (.*)"))) return {};
  return {std::stod(match[1]), match[2]};
}

double time_of_fault(const std::string& output) {
  std::smatch match;
  REQUIRE(std::regex_search(output, match, std::regex("fault at ([0-9.]+)")));
  return std::stod(match[1]);
}

/// All survivors ended with the same reason within `seconds` of the fault; the reason.
std::string common_reason(Job& job, int size, int culprit, double seconds) {
  const double fault = time_of_fault(job.rank(culprit).output());
  std::set<std::string> reasons;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == culprit) continue;
    CAPTURE(rank, job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 6);
    const Loss loss = loss_of(job.rank(rank).output());
    CHECK(loss.when - fault < seconds);
    reasons.insert(loss.reason);
  }
  REQUIRE(reasons.size() == 1);
  return *reasons.begin();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("processes of one host sum in shared memory and leave nothing behind") {
  const int n = GENERATE(1, 2, 3, 4);
  const std::string algorithm = GENERATE("direct", "ring");
  const auto before = std::distance(std::filesystem::directory_iterator("/dev/shm"), {});
  Job job(n, {"sums"}, {{"COLLAR_ALGO", "all_reduce=" + algorithm + ",broadcast=" + algorithm}});
  REQUIRE(job.finish());
  for (int rank = 0; rank < n; ++rank) {
    CAPTURE(n, rank, job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 0);
    CHECK(contains(job.rank(rank).output(), "ok"));
  }
  CHECK(std::distance(std::filesystem::directory_iterator("/dev/shm"), {}) == before);
}

TEST_CASE("processes get the bits of a serial reduction from every collective") {
  const int n = GENERATE(2, 3);
  const std::string algorithm = GENERATE("direct", "ring");
  Job job(n, {"collectives", algorithm}, {{"COLLAR_ALGO", test::algorithm_for_all(algorithm)}});
  REQUIRE(job.finish(std::chrono::seconds(60)));
  for (int rank = 0; rank < n; ++rank) {
    CAPTURE(n, algorithm, rank, job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 0);
  }
}

TEST_CASE("one job can form one group after another") {
  test::Variables variables;
  if (GENERATE(false, true)) {  // over TCP, at a port that was free a moment ago
    const comm::Listener listener = comm::listen_on({"127.0.0.1", 0});
    variables = {{"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", std::to_string(listener.endpoint.port)}};
  }
  Job job(3, {"again"}, variables);
  REQUIRE(job.finish());
  for (int rank = 0; rank < 3; ++rank) {
    CAPTURE(variables, rank, job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 0);
  }
}

TEST_CASE("a forked child has no part in its parent's group") {
  Job job(2, {"fork"});
  REQUIRE(job.finish());
  for (int rank = 0; rank < 2; ++rank) {
    CAPTURE(rank, job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 0);
  }
}

TEST_CASE("a killed rank is named by all others at once") {
  const int victim = GENERATE(0, 1, 2);
  const std::string place = GENERATE("own", "arena");
  const std::string algorithm = GENERATE("direct", "ring");
  Job job(3, {"die", std::to_string(victim), "20", place},
          {{"COLLAR_ALGO", "all_reduce=" + algorithm}});
  REQUIRE(job.finish());
  CAPTURE(victim, place, algorithm);
  const std::string reason = common_reason(job, 3, victim, 2.0);
  CAPTURE(reason);
  CHECK(job.rank(victim).exit_code() == -SIGKILL);
  CHECK(contains(reason, fmt::format("rank {} (pid {}) has died", victim, job.rank(victim).pid())));
  CHECK(contains(reason, "all_reduce"));  // what it was last doing
}

TEST_CASE("a rank killed from outside, whatever it is doing, is no reason to wait") {
  Job job(3, {"loop"}, {{"COLLAR_JOIN_TIMEOUT", "2"}});
  std::this_thread::sleep_for(std::chrono::milliseconds(GENERATE(0, 2, 4, 8, 16, 50)));
  job.rank(1).signal(SIGKILL);
  REQUIRE(job.finish());
  std::string reasons;
  for (int rank : {0, 2}) {
    CAPTURE(job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 6);
    reasons += loss_of(job.rank(rank).output()).reason + "\n";
  }
  // While ranks still join, the second one may only hear that the first to notice is gone.
  CHECK_THAT(reasons, Contains("rank 1") || Contains("within 2 s: 1 (of 3"));
}

TEST_CASE("a stopped rank is lost after the timeout, on all ranks alike") {
  Job job(3, {"stop", "1", "20"}, {{"COLLAR_TIMEOUT", "0.4"}});
  REQUIRE(job.finish(std::chrono::seconds(20), 1));
  job.rank(1).signal(SIGCONT);
  REQUIRE(job.finish());  // the stopped rank wakes up in a group that has ended
  const std::string reason = common_reason(job, 3, 1, 3.0);
  CAPTURE(reason);
  CHECK(contains(reason, fmt::format("rank 1 (pid {}) is silent", job.rank(1).pid())));
  CHECK_FALSE(contains(reason, "rank 2 ("));
  CHECK(loss_of(job.rank(1).output()).reason == reason);
}

TEST_CASE("a rank that is stopped for less than the timeout is no loss") {
  Job job(2, {"stop", "1", "20"}, {{"COLLAR_TIMEOUT", "30"}});
  REQUIRE(job.rank(1).wait_until_stopped(comm::Deadline::after(std::chrono::seconds(20))));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  job.rank(1).signal(SIGCONT);
  REQUIRE(job.finish(std::chrono::seconds(30)));
  for (int rank : {0, 1}) CHECK(job.rank(rank).exit_code() == 0);
}

TEST_CASE("a rank that ends early, with or without clean-up, is named") {
  const std::string how = GENERATE("exit", "throw");
  Job job(3, {how, "2", "5"});
  REQUIRE(job.finish());
  const std::string reason = common_reason(job, 3, 2, 2.0);
  CAPTURE(how, reason);
  CHECK(contains(reason, how == "exit" ? "rank 2 (pid" : "has left the group"));
}

TEST_CASE("processes that call different collectives all see both calls") {
  Job job(3, {"mismatch", "2", "5"});
  REQUIRE(job.finish());
  const std::string reason = common_reason(job, 3, 2, 2.0);
  CAPTURE(reason);
  CHECK(loss_of(job.rank(2).output()).reason == reason);
  CHECK(contains(reason, "rank 2 called broadcast(250000 × f32, root 0, direct)"));
  CHECK(contains(reason, "rank 0 called all_reduce(250000 × f32, sum, direct)"));
}

TEST_CASE("a rank can end the job with a reason of its own") {
  Job job(3, {"abort", "1", "5"});
  REQUIRE(job.finish());
  CHECK(common_reason(job, 3, 1, 2.0) == "rank 1 found a bad picture");
}

TEST_CASE("ranks that never come are listed") {
  Job job(4, 2, {"sums"}, {{"COLLAR_JOIN_TIMEOUT", "0.5"}});
  REQUIRE(job.finish());
  for (int rank : {0, 1}) {
    CAPTURE(job.rank(rank).output());
    CHECK(job.rank(rank).exit_code() == 6);
    CHECK(contains(job.rank(rank).output(), "did not join within 0.501 s: 2, 3 (of 4"));
  }
}
