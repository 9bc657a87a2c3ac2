// SPDX-License-Identifier: Apache-2.0
// Each part of a layer may be trained while the others are frozen; its gradient is the same.
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <vector>

#include "engine/ops/ops.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using collar::test::OnCpu;

namespace {

struct Parts {
  Tensor x;
  Tensor w;
  Tensor b;
  std::vector<Tensor*> all() { return {&x, &w, &b}; }
};

using Operation = std::function<Tensor(const Parts&)>;

// The gradients of the parts named in `trained`, after two passes; the others' are undefined.
std::vector<std::vector<float>> gradients(const Operation& operation, const Parts& values,
                                          const std::string& trained) {
  Parts parts{values.x.clone(), values.w.clone(), values.b.clone()};
  parts.x.set_requires_grad(trained.find('x') != std::string::npos);
  parts.w.set_requires_grad(trained.find('w') != std::string::npos);
  parts.b.set_requires_grad(trained.find('b') != std::string::npos);
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor y = operation(parts);
    sum(cast(mul(y, y), DType::f32)).backward();
  }
  std::vector<std::vector<float>> result;
  for (const Tensor* part : parts.all()) {
    const Tensor gradient = part->grad();
    CHECK(gradient.defined() == part->requires_grad());
    result.push_back(gradient.defined() ? cast(gradient, DType::f32).to_vector<float>()
                                        : std::vector<float>{});
  }
  return result;
}

void check_every_choice(const Operation& operation, const Parts& values) {
  const auto wanted = gradients(operation, values, "xwb");
  for (const std::string trained : {"x", "w", "b", "wb", "xw", "xb"}) {
    INFO("trained: " << trained);
    const auto found = gradients(operation, values, trained);
    for (std::size_t part = 0; part < found.size(); ++part) {
      REQUIRE((found[part].empty() || found[part].size() == wanted[part].size()));
      for (std::size_t i = 0; i < found[part].size(); ++i) {
        CHECK(found[part][i] == Approx(wanted[part][i]).epsilon(1e-5).margin(1e-5));
      }
    }
  }
}

}  // namespace

TEST_CASE("Any part of a convolution or linear layer may be frozen") {
  OnCpu cpu;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    INFO(name_of(dtype));
    for (const std::int64_t groups : {1, 2}) {
      const Conv2dOptions options{{1, 1}, {1, 1}, {1, 1}, groups};
      check_every_choice([&](const Parts& p) { return conv2d(p.x, p.w, p.b, options); },
                         {cast(cpu.random({2, 32, 5, 4}, 1), dtype),
                          cpu.random({32, 32 / groups, 3, 3}, 2), cpu.random({32}, 3)});
    }
    check_every_choice(
        [&](const Parts& p) { return linear(p.x, p.w, p.b); },
        {cast(cpu.random({3, 5}, 1), dtype), cpu.random({4, 5}, 2), cpu.random({4}, 3)});
  }
}

TEST_CASE("A number multiplies a bf16 tensor unrounded") {
  OnCpu cpu;
  const auto bits = [](const bfloat16& value, float factor) {
    return bfloat16(static_cast<float>(value) * factor).bits;
  };
  const Tensor x = cpu.leaf(cast(cpu.random({64}, 1), DType::bf16));
  const Tensor weights = cast(cpu.random({64}, 2), DType::bf16);
  const Tensor y = mul(x, 0.1);
  sum(mul(y, weights)).backward();
  for (int i = 0; i < 64; ++i) {
    CHECK(y.data<bfloat16>()[i].bits == bits(x.data<bfloat16>()[i], 0.1f));
    CHECK(x.grad().data<bfloat16>()[i].bits == bits(weights.data<bfloat16>()[i], 0.1f));
  }
  // The gradient of a mean of ten is a tenth of what comes from above, here 9.
  const Tensor z = cpu.leaf(cast(cpu.random({10}, 3), DType::bf16));
  mul(mean(z), 9.0).backward();
  CHECK(z.grad().data<bfloat16>()[0].bits == bfloat16(9.0f * 0.1f).bits);
}
