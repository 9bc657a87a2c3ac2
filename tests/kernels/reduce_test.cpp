// SPDX-License-Identifier: Apache-2.0
// Sums over dimensions, the squared norm, and the order of the largest values.
#include "kernels/reduce.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/reference/reduce.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using test::Buffer;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("sums over any dimensions agree with their definition") {
  struct Case {
    Shape x, y;
  };
  const std::vector<Case> cases{{{3, 4, 5, 7}, {1, 1, 1, 1}},
                                {{3, 4, 5, 7}, {1, 4, 1, 1}},
                                {{3, 4, 5, 7}, {3, 4, 1, 1}},
                                {{3, 4, 5, 7}, {3, 1, 5, 7}},
                                {{3, 4, 5, 7}, {3, 4, 5, 1}},
                                {{3, 4, 5, 7}, {1, 4, 5, 7}},
                                {{3, 4, 5, 7}, {1, 4, 1, 7}},
                                {{3, 4, 5, 7}, {3, 4, 5, 7}},
                                {{30001}, {1}},
                                {{0, 3}, {1, 3}},
                                {{0, 3}, {1, 1}},
                                {{}, {}},
                                {{300, 500}, {1, 500}}};
  for (const int threads : {1, 2}) {
    CpuContext context({.threads = threads});
    for (const Case& c : cases) {
      for (const DType from : {DType::f32, DType::bf16}) {
        for (const DType to : {DType::f32, DType::bf16}) {
          INFO(to_string(c.x) << " -> " << to_string(c.y));
          Buffer x(c.x, from);
          x.randomize(1);
          Buffer y(c.y, to);
          Buffer exact(c.y, to);
          kernels::sum_to(context, x.view(), y.view(), 0.5);
          kernels::reference::sum_to(x.view(), exact.view(), 0.5);
          test::require_close(y.view(), exact.view(), 1);
        }
      }
    }
  }
}

TEST_CASE("the mean of nothing is NaN") {
  CpuContext context;
  Buffer x({0, 3});
  Buffer y({1, 1});
  kernels::sum_to(context, x.view(), y.view(), kInf);
  CHECK(std::isnan(y.data()[0]));
}

TEST_CASE("the squared norm has the same bits on every instruction set and number of threads") {
  for (const std::int64_t n : {0, 1, 15, 17, 4095, 4096, 4097, 100003}) {
    Buffer x({n});
    x.randomize(1);
    CpuContext baseline({.threads = 1, .isa = Isa::baseline});
    const double wanted = kernels::squared_norm(baseline, x.view());
    CHECK(wanted == Approx(kernels::reference::squared_norm(x.view())).epsilon(1e-12));
    for (const Isa isa : test::isas_here()) {
      CpuContext context({.threads = 3, .isa = isa});
      CHECK(kernels::squared_norm(context, x.view()) == wanted);
    }
  }
}

TEST_CASE("the squared norm of parts adds up at block boundaries") {
  // What lets gradients be cut into buckets or shards without changing their norm.
  CpuContext context;
  const std::int64_t n = 5 * kernels::kNormBlock + 100;
  Buffer x({n});
  x.randomize(1);
  double sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += kernels::kNormBlock) {
    const std::int64_t length = std::min(kernels::kNormBlock, n - begin);
    sum += kernels::squared_norm(context, {x.data() + begin, DType::f32, {length}});
  }
  CHECK(sum == kernels::squared_norm(context, x.view()));
}

TEST_CASE("NaN, infinity and huge values reach the squared norm") {
  CpuContext context;
  Buffer x({5000});
  x.data()[4999] = 1e30f;
  CHECK(kernels::squared_norm(context, x.view()) == Approx(1e60));
  x.data()[7] = kInf;
  CHECK(kernels::squared_norm(context, x.view()) == double{kInf});
  x.data()[4500] = kNan;
  CHECK(std::isnan(kernels::squared_norm(context, x.view())));
}

TEST_CASE("top k lists the largest, equal ones by column, NaN first of all") {
  CpuContext context({.threads = 2});
  Buffer x({2, 6});
  const std::vector<float> rows{1, 3, 3, -kInf, 2, 3, 0, kNan, kInf, -1, kNan, 0};
  std::copy(rows.begin(), rows.end(), x.data());
  Buffer index({2, 4}, DType::i64);
  kernels::top_k(context, x.view(), index.view());
  const std::vector<std::int64_t> wanted{1, 2, 5, 4, 1, 4, 2, 0};
  CHECK(std::vector<std::int64_t>(index.data<std::int64_t>(), index.data<std::int64_t>() + 8) ==
        wanted);
}

TEST_CASE("top k agrees with a stable sort, for ties too") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t k : {1, 5, 300}) {
      CpuContext context({.threads = 2});
      Buffer x({40, 300}, dtype);  // more columns than bf16 has values of this size: ties
      x.randomize(1);
      Buffer index({40, k}, DType::i64);
      Buffer exact({40, k}, DType::i64);
      kernels::top_k(context, x.view(), index.view());
      kernels::reference::top_k(x.view(), exact.view());
      REQUIRE(std::memcmp(index.view().data, exact.view().data, exact.view().bytes()) == 0);
    }
  }
}
