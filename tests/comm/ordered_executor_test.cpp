// SPDX-License-Identifier: Apache-2.0
// Tasks in order, in whose thread they run, and what a failure does to those behind it.
#include "comm/ordered_executor.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/core/error.hpp"

using collar::RankLostError;
using collar::comm::OrderedExecutor;
using collar::comm::Work;

TEST_CASE("Tasks are carried out in the order in which they came, whoever waits for them") {
  OrderedExecutor executor;
  std::vector<int> order;
  std::vector<Work> works;
  for (int i = 0; i < 100; ++i) works.push_back(executor.start([&, i] { order.push_back(i); }));
  executor.run([&] { order.push_back(100); });
  for (const Work& work : works) CHECK(work.is_done());
  REQUIRE(order.size() == 101);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(executor.unfinished() == 0);
}

TEST_CASE("A synchronous task with nothing before it runs in its caller's thread") {
  OrderedExecutor executor;
  std::thread::id synchronous, asynchronous;
  executor.run([&] { synchronous = std::this_thread::get_id(); });
  executor.start([&] { asynchronous = std::this_thread::get_id(); }).wait();
  CHECK(synchronous == std::this_thread::get_id());
  CHECK(asynchronous != std::this_thread::get_id());
}

TEST_CASE("After a task has thrown, all behind it throw the same and nothing is carried out") {
  OrderedExecutor executor;
  std::promise<void> go;
  bool carried_out = false;
  const auto touch = [&] { carried_out = true; };
  const Work failing = executor.start([&] {
    go.get_future().wait();
    throw std::runtime_error("the first");
  });
  const Work behind = executor.start(touch);
  CHECK(executor.unfinished() == 2);
  go.set_value();
  CHECK_THROWS_WITH(failing.wait(), "the first");
  CHECK_THROWS_WITH(behind.wait(), "the first");
  CHECK_THROWS_WITH(executor.run(touch), "the first");
  CHECK_THROWS_WITH(executor.start(touch), "the first");
  CHECK_FALSE(carried_out);
}

TEST_CASE("What is still queued when the executor goes is not begun, and says so") {
  std::promise<void> go, begun;
  bool carried_out = false;
  Work under_way, queued;
  std::thread opener;
  {
    OrderedExecutor executor;
    under_way = executor.start([&] {
      begun.set_value();
      go.get_future().wait();
    });
    queued = executor.start([&] { carried_out = true; });
    begun.get_future().wait();
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the destructor waits by then
      go.set_value();
    });
  }
  opener.join();
  CHECK_NOTHROW(under_way.wait());
  CHECK_THROWS_AS(queued.wait(), RankLostError);
  CHECK_FALSE(carried_out);
}

TEST_CASE("A wait with a limit tells whether the work is done") {
  OrderedExecutor executor;
  std::promise<void> go;
  const Work work = executor.start([&] { go.get_future().wait(); });
  CHECK_FALSE(work.wait_for(std::chrono::milliseconds(5)));
  CHECK_FALSE(work.is_done());
  go.set_value();
  CHECK(work.wait_for(std::chrono::seconds(5)));
  CHECK(Work().is_done());
}
