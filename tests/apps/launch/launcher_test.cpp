// SPDX-License-Identifier: Apache-2.0
// `collar launch` with small shell programs: exit codes, who is blamed, signals, and that nothing
// is left running.
#include "apps/launch/launcher.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <set>

#include "apps/launch/rank_output.hpp"
#include "apps/launch/reserved_port.hpp"
#include "kernels/core/error.hpp"
#include "kernels/runtime/cpu_context.hpp"
#include "tests/apps/support/program.hpp"

using namespace collar::apps;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using collar::test::eventually;
using collar::test::Finished;
using collar::test::is_alive;
using collar::test::read_text;
using collar::test::run_collar;
using collar::test::RunningProgram;
using collar::test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

/// The command line that runs a shell script as every rank.
std::vector<std::string> launch(int ranks, const std::string& script,
                                std::vector<std::string> options = {}) {
  std::vector<std::string> words = {COLLAR_PROGRAM, "launch", "-n", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"sh", "-c", script});
  return words;
}

/// A job whose ranks tell their pids, and a grandchild's, and then wait.
class WaitingJob {
 public:
  explicit WaitingJob(int ranks, const std::string& trap = "")
      : program_(
            launch(ranks, trap + "sleep 60 & echo $! > $FOLDER/child-$RANK; "
                                 "echo $$ > $FOLDER/.$RANK; mv $FOLDER/.$RANK $FOLDER/rank-$RANK; "
                                 "wait; wait; exit 0"),
            {{"FOLDER", folder_.path().string()}}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const fs::path file = folder_.path() / ("rank-" + std::to_string(rank));
      REQUIRE(eventually([&] { return fs::exists(file); }));
      ranks_.push_back(std::stoi(read_text(file)));
      pids_.push_back(ranks_.back());
      pids_.push_back(std::stoi(read_text(folder_.path() / ("child-" + std::to_string(rank)))));
    }
  }

  RunningProgram& program() { return program_; }
  pid_t rank(std::size_t number) const { return ranks_[number]; }
  bool all_alive() const { return std::all_of(pids_.begin(), pids_.end(), is_alive); }
  bool none_alive() const { return std::none_of(pids_.begin(), pids_.end(), is_alive); }

 private:
  TemporaryDirectory folder_;
  RunningProgram program_;
  std::vector<pid_t> ranks_;
  std::vector<pid_t> pids_;
};

}  // namespace

TEST_CASE("Every rank finds its place in the environment") {
  const TemporaryDirectory folder;
  const std::string script =
      "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT "
      "$COLLAR_JOB_TOKEN $OMP_NUM_THREADS > " +
      folder.path().string() + "/$RANK";
  REQUIRE(RunningProgram(launch(3, script)).wait().code == 0);
  std::set<std::string> ports;
  std::set<std::string> tokens;
  for (int rank = 0; rank < 3; ++rank) {
    std::istringstream words(read_text(folder.path() / std::to_string(rank)));
    std::string own, local, world, local_world, address, port, token, threads;
    words >> own >> local >> world >> local_world >> address >> port >> token >> threads;
    CHECK(own == std::to_string(rank));
    CHECK(local == own);
    CHECK(world == "3");
    CHECK(local_world == "3");
    CHECK(address == "127.0.0.1");
    CHECK(token.size() == 64);
    CHECK(std::stoi(threads) >= 1);
    ports.insert(port);
    tokens.insert(token);
  }
  CHECK(ports.size() == 1);
  CHECK(tokens.size() == 1);
}

TEST_CASE("torchrun's words for how many ranks are understood") {
  const auto world = [](const std::vector<std::string>& options) {
    std::vector<std::string> words{"launch"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"sh", "-c", "echo world $WORLD_SIZE"});
    return run_collar(words);
  };
  const std::string all = "world " + std::to_string(collar::available_cpus()) + "\n";
  CHECK_THAT(world({"--standalone", "--nproc-per-node", "auto"}).out, Contains(all));
  CHECK_THAT(world({"--nproc_per_node=cpu"}).out, Contains(all));
  CHECK_THAT(world({"--nproc-per-node=gpu"}).err, Contains("CUDA is") && Contains("say cpu"));
  const Finished three = world({"-n", "three"});
  CHECK(three.code == 2);
  CHECK_THAT(three.err, Contains("-n") && Contains("\"three\""));
}

TEST_CASE("A grace that is no time is refused") {
  for (const char* grace : {"nan", "-1", "inf"}) {
    const Finished finished = RunningProgram(launch(1, "true", {"--grace", grace})).wait();
    CHECK(finished.code == 2);
    CHECK_THAT(finished.err, Contains("--grace"));
  }
}

TEST_CASE("Rank 0 prints through, the others into logs, and --tee shows them") {
  const TemporaryDirectory folder;
  const auto logs = (folder.path() / "log").string();
  const Finished quiet =
      RunningProgram(launch(2, "echo out$RANK; echo err$RANK >&2", {"--log-dir", logs})).wait();
  CHECK(quiet.code == 0);
  CHECK(quiet.out == "out0\n");
  CHECK(quiet.err == "err0\n");
  CHECK(read_text(logs + "/rank-1.log") == "out1\nerr1\n");
  CHECK_FALSE(fs::exists(logs + "/rank-0.log"));
  const Finished tee = RunningProgram(launch(3, "echo out$RANK", {"--tee"})).wait();
  CHECK(tee.out == "out0\n");
  CHECK_THAT(tee.err, Contains("[r1] out1\n") && Contains("[r2] out2\n"));
}

TEST_CASE("The rank that fails first ends the job, gives its code and shows its last lines") {
  const Finished finished = RunningProgram(launch(3, R"(
    if [ $RANK = 2 ]; then seq 1 30; echo "no photo"; exit 9; fi
    sleep 60)"))
                                .wait();
  CHECK(finished.code == 9);
  CHECK_THAT(finished.err, Contains("rank 2 (pid ") && Contains("exited with code 9") &&
                               Contains("[r2] 30\n[r2] no photo\n"));
  CHECK_THAT(finished.err, Contains("[r2] 12\n") && !Contains("[r2] 11\n"));  // the last 20
}

TEST_CASE("A rank that is killed is a lost rank") {
  WaitingJob job(2);
  kill(job.rank(1), SIGKILL);
  const Finished finished = job.program().wait();
  CHECK(finished.code == 6);
  CHECK_THAT(finished.err, Contains("rank 1") && Contains("signal 9 (Killed)"));
  CHECK(eventually([&] { return job.none_alive(); }, 2s));
}

TEST_CASE("Ranks that only lost another one are not blamed") {
  // Rank 0 notices first and leaves with code 6; rank 1 had the trouble.
  const Finished finished = RunningProgram(launch(2, R"(
        if [ $RANK = 0 ]; then exit 6; fi
        trap 'echo bad photo; exit 3' TERM; echo ready; sleep 60 & wait)"))
                                .wait();
  CHECK((finished.code == 3 || finished.code == 6));  // 6: the trap was not set yet
  const Finished late = RunningProgram(launch(2, R"(
        trap '' TERM
        if [ $RANK = 0 ]; then sleep 0.3; exit 6; fi
        sleep 0.6; kill -11 $$)"))
                            .wait();
  CHECK(late.code == 6);
  CHECK_THAT(late.err, Contains("it was rank 1") && Contains("signal 11"));
}

TEST_CASE("A rank that ignores SIGTERM is killed after the grace") {
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished = RunningProgram(launch(2, R"(
    if [ $RANK = 1 ]; then sleep 0.2; exit 4; fi
    trap '' TERM; while :; do sleep 0.1; done)",
                                                  {"--grace", "0.3"}))
                                .wait();
  CHECK(finished.code == 4);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
}

TEST_CASE("A stopped rank does not keep the job from ending") {
  WaitingJob job(2);
  kill(job.rank(0), SIGSTOP);
  kill(job.rank(1), SIGKILL);
  CHECK(job.program().wait().code == 6);
  CHECK(eventually([&] { return job.none_alive(); }, 2s));
}

TEST_CASE("Ctrl-C and SIGTERM reach every rank and nothing stays") {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
    WaitingJob job(2);
    job.program().send(signal);
    CHECK(job.program().wait().code == code);
    CHECK(eventually([&] { return job.none_alive(); }, 2s));
  }
}

TEST_CASE("Ranks that save and stop say so in the job's exit code") {
  WaitingJob job(2, "trap 'exit 75' USR1; ");
  job.program().send(SIGUSR1);
  CHECK(job.program().wait().code == 75);
}

TEST_CASE("A second Ctrl-C kills ranks that do not listen") {
  WaitingJob job(2, "trap '' INT; ");
  job.program().send(SIGINT);
  std::this_thread::sleep_for(200ms);
  job.program().send(SIGINT);  // so soon that it is the same key press
  std::this_thread::sleep_for(kSameRequest);
  CHECK(job.all_alive());
  job.program().send(SIGINT);
  CHECK(job.program().wait().code == 130);
  CHECK(eventually([&] { return job.none_alive(); }, 2s));
}

TEST_CASE("No orphan outlives a killed launcher, not even a grandchild") {
  WaitingJob job(3);
  REQUIRE(job.all_alive());
  job.program().send(SIGKILL);
  CHECK(job.program().wait().code == 128 + SIGKILL);
  CHECK(eventually([&] { return job.none_alive(); }, 2s));
}

TEST_CASE("What a finished rank left behind is cleaned up") {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "pid";
  const Finished finished =
      RunningProgram(launch(1, "sleep 60 & echo $! > " + file.string() + "; exit 0")).wait();
  CHECK(finished.code == 0);
  CHECK(eventually([&] { return !is_alive(std::stoi(read_text(file))); }, 2s));
}

TEST_CASE("A program that cannot be run is a usage error") {
  const Finished missing = run_collar({"launch", "-n", "2", "no-such-program"});
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, Contains("no-such-program"));
  CHECK(run_collar({"launch", "/etc/passwd"}).code == 2);
  CHECK(run_collar({"launch"}).code == 2);
  CHECK(run_collar({"launch", "-n", "0", "true"}).code == 2);
  CHECK(run_collar({"launch", "--log-dir", "/proc/none", "true"}).code == 2);
}

TEST_CASE("A launcher inside a pipe does not keep it open") {
  const Finished finished =
      RunningProgram({"/bin/sh", "-c", "\"$0\" launch -n 2 echo hello | cat", COLLAR_PROGRAM})
          .wait();
  CHECK(finished.out == "hello\n");
}

TEST_CASE("The reserved port is given to nobody else, and a server can listen on it") {
  const ReservedPort reserved;
  const auto listen_on = [](int port) {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool ok = bind(descriptor, generic, size) == 0 && listen(descriptor, 8) == 0 &&
                    getsockname(descriptor, generic, &size) == 0;
    return std::pair{descriptor, ok ? int{ntohs(address.sin_port)} : -1};
  };
  std::vector<int> descriptors;
  for (int i = 0; i < 200; ++i) {
    const auto [descriptor, port] = listen_on(0);
    descriptors.push_back(descriptor);
    CHECK(port > 0);
    CHECK(port != reserved.port());
  }
  const auto [server, port] = listen_on(reserved.port());
  descriptors.push_back(server);
  CHECK(port == reserved.port());
  for (const int descriptor : descriptors) close(descriptor);
}

TEST_CASE("What is remembered of an endless talker is bounded") {
  RankOutput output(1, std::nullopt, std::nullopt);
  const std::string noise(100'000, 'x');
  for (int i = 0; i < 50; ++i) output.take(noise);  // a line of 5 MB
  output.take("\nlast \x1b[31mline");
  output.finish();
  REQUIRE(output.last_lines().size() == 2);
  CHECK(output.last_lines()[0].size() == RankOutput::kLineBytes);
  CHECK(output.last_lines()[1] == "last \\x1b[31mline");
}
