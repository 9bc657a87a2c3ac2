// SPDX-License-Identifier: Apache-2.0
#include "data/loader/tensor_pool.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

using namespace collar;
using data::TensorPool;

TEST_CASE("A block comes back when the last handle of its tensor is gone") {
  const auto pool = TensorPool::create(12);
  Tensor first = pool->take({3, 4});
  const void* place = first.view().data;
  CHECK(first.dtype() == DType::f32);
  CHECK(first.shape() == Shape{3, 4});
  CHECK(pool->blocks() == 1);

  Tensor handle = first;
  first = Tensor();
  const Tensor second = pool->take({2, 2});
  CHECK(second.view().data != place);  // the handle still holds the first block
  CHECK(pool->blocks() == 2);

  handle = Tensor();
  CHECK(pool->take({12}).view().data == place);
  CHECK(pool->blocks() == 2);
}

TEST_CASE("A tensor outlives its pool") {
  auto pool = TensorPool::create(4);
  Tensor tensor = pool->take({4});
  pool.reset();
  std::fill_n(tensor.data<float>(), 4, 1.0f);
  CHECK(tensor.to_vector<float>() == std::vector<float>(4, 1));
}

TEST_CASE("Threads share a pool, each block in one hand at a time") {
  const auto pool = TensorPool::create(1000);
  std::vector<std::thread> threads;
  std::atomic<int> disturbed = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto mark = static_cast<float>(i);
      for (int round = 0; round < 500; ++round) {
        Tensor tensor = pool->take({1000});
        std::fill_n(tensor.data<float>(), 1000, mark);
        std::this_thread::yield();
        for (const float value : tensor.to_vector<float>()) disturbed += value != mark;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(disturbed == 0);
  CHECK(pool->blocks() <= 4);
}
