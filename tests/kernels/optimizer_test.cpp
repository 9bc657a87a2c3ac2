// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: PyTorch's bits, and the formulas over long ranges.
#include "kernels/optimizer.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/reference/optimizer.hpp"
#include "tests/kernels/buffers.hpp"

using namespace collar;
using kernels::AdamStep;
using kernels::SgdStep;
using test::Buffer;
using test::same_bits;

namespace {

void set(Buffer& buffer, const std::vector<float>& values) {
  std::copy(values.begin(), values.end(), buffer.data());
}

std::vector<float> get(Buffer& buffer) {
  return {buffer.data(), buffer.data() + buffer.view().numel()};
}

const std::vector<float> kStart{1, -2, 3};
const std::vector<std::vector<float>> kGradients{{0.1f, 0.2f, -0.3f}, {0.05f, -0.1f, 0.4f}};

}  // namespace

TEST_CASE("two steps of AdamW give PyTorch's bits") {
  // torch 2.14: AdamW([1, -2, 3], lr=0.01, weight_decay=0.1, foreach=False)
  const std::vector<std::vector<float>> wanted{{0x1.fa5e36p-1f, -0x1.0106260p+1f, 0x1.80e5600p+1f},
                                               {0x1.f516c2p-1f, -0x1.011ba0p+1f, 0x1.804370p+1f}};
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer p({3}), g({3}), m({3}), v({3});
    set(p, kStart);
    AdamStep step{.lr = 0.01, .weight_decay = 0.1};
    for (std::size_t t = 0; t < 2; ++t) {
      set(g, kGradients[t]);
      step.step = static_cast<std::int64_t>(t) + 1;
      kernels::adam(context, p.view(), g.view(), m.view(), v.view(), step);
      CHECK(get(p) == wanted[t]);
    }
  }
}

TEST_CASE("two steps of SGD with Nesterov momentum give PyTorch's bits") {
  const std::vector<std::vector<float>> wanted{{0x1.fe0deep-1f, -2, 3},
                                               {0x1.fbc4fcp-1f, -0x1.fe8a72p+0f, 0x1.7e4c30p+1f}};
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer p({3}), g({3}), buffer({3});
    set(p, kStart);
    SgdStep step{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .first = true};
    for (std::size_t t = 0; t < 2; ++t) {
      set(g, kGradients[t]);
      kernels::sgd(context, p.view(), g.view(), buffer.view(), step);
      step.first = false;
      CHECK(get(p) == wanted[t]);
    }
  }
}

TEST_CASE("Adam agrees with its formulas, with the same bits on any threads and instructions") {
  for (const std::int64_t n : {0, 1, 13, 16, 17, 70001}) {
    for (const bool decoupled : {true, false}) {
      std::vector<AdamStep> steps;
      for (const std::int64_t t : {1, 2, 3, 1000}) {
        steps.push_back({.lr = 0.01, .weight_decay = 0.05, .decoupled = decoupled, .step = t});
      }
      Buffer exact({n}), exact_m({n}), exact_v({n}), first({n});
      exact.randomize(1);
      for (const Isa isa : test::isas_here()) {
        for (const int threads : {1, 2}) {
          CpuContext context({.threads = threads, .isa = isa});
          Buffer p({n}), m({n}), v({n}), g({n});
          p.randomize(1);
          const bool reference_too = isa == Isa::baseline && threads == 1;
          for (const AdamStep& step : steps) {
            g.randomize(static_cast<std::uint32_t>(step.step) + 1);
            kernels::adam(context, p.view(), g.view(), m.view(), v.view(), step);
            if (reference_too) {
              kernels::reference::adam(exact.view(), g.view(), exact_m.view(), exact_v.view(),
                                       step);
            }
          }
          if (reference_too) first.copy_from(p, 0);
          test::require_close(p.view(), exact.view(), 4);
          test::require_close(m.view(), exact_m.view(), 4);
          test::require_close(v.view(), exact_v.view(), 4);
          REQUIRE(same_bits(p, first));
        }
      }
    }
  }
}

TEST_CASE("SGD agrees with its formulas, with the same bits on any threads and instructions") {
  const std::vector<SgdStep> kinds{
      {.lr = 0.1},
      {.lr = 0.1, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9},
      {.lr = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}};
  for (const std::int64_t n : {1, 13, 17, 70001}) {
    for (SgdStep step : kinds) {
      Buffer exact({n}), exact_buffer({n}), first({n});
      exact.randomize(1);
      for (const Isa isa : test::isas_here()) {
        for (const int threads : {1, 2}) {
          CpuContext context({.threads = threads, .isa = isa});
          Buffer p({n}), buffer({n}), g({n});
          p.randomize(1);
          const bool reference_too = isa == Isa::baseline && threads == 1;
          for (std::uint32_t t = 0; t < 3; ++t) {
            g.randomize(t + 2);
            step.first = t == 0;
            const bool momentum = step.momentum != 0;
            kernels::sgd(context, p.view(), g.view(), momentum ? buffer.view() : View{}, step);
            if (reference_too) {
              kernels::reference::sgd(exact.view(), g.view(),
                                      momentum ? exact_buffer.view() : View{}, step);
            }
          }
          if (reference_too) first.copy_from(p, 0);
          test::require_close(p.view(), exact.view(), 4);
          REQUIRE(same_bits(p, first));
        }
      }
    }
  }
}

TEST_CASE("a range that starts anywhere in an arena is updated as if alone") {
  for (const Isa isa : test::isas_here()) {
    CpuContext context({.isa = isa});
    Buffer arena({100}), g({100}), m({100}), v({100});
    arena.randomize(1);
    g.randomize(2);
    Buffer p2({41}), g2({41}), m2({41}), v2({41});
    p2.copy_from(arena, 7);
    g2.copy_from(g, 7);
    const auto range = [](Buffer& b) { return View{b.data() + 7, DType::f32, {41}}; };
    const float before = arena.data()[6];
    const float after = arena.data()[48];
    kernels::adam(context, range(arena), range(g), range(m), range(v), {});
    kernels::adam(context, p2.view(), g2.view(), m2.view(), v2.view(), {});
    CHECK(std::memcmp(arena.data() + 7, p2.data(), 41 * sizeof(float)) == 0);
    CHECK(arena.data()[6] == before);
    CHECK(arena.data()[48] == after);
  }
}
