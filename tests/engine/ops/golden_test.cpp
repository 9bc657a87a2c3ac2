// SPDX-License-Identifier: Apache-2.0
// Every operation, with its gradients, against what PyTorch gives (golden/ops).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/ops/ops.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/golden_ops.hpp"
#include "tests/support/isas.hpp"
#include "tests/support/runtime.hpp"

using namespace collar;
using collar::test::GoldenOps;
using collar::test::OnCpu;
using collar::test::OpCase;

namespace {

// The inputs of a case as leaves, and the check of everything the file records of it.
class Case {
 public:
  Case(OnCpu& cpu, const OpCase& golden) : cpu_(cpu), golden_(golden) {}

  Tensor constant(const std::string& name) { return golden_.tensor(name).to(cpu_.context()); }
  Tensor optional(const std::string& name) { return golden_.has(name) ? leaf(name) : Tensor(); }
  Tensor leaf(const std::string& name) {
    Tensor tensor = constant(name).clone();
    tensor.set_requires_grad(true);
    return tensor;
  }
  Tensor ones_like(const std::string& name) {
    return Tensor::full(golden_.tensor(name).shape(), 1, DType::f32, &cpu_.context());
  }
  bool has(const std::string& name) const { return golden_.has(name); }
  Tensor floats_of_bits(const std::string& name) {
    const Tensor bits = golden_.tensor(name);
    Tensor floats = Tensor::empty(bits.shape(), DType::f32, &cpu_.context());
    std::memcpy(floats.data<float>(), bits.data<std::int32_t>(), bits.bytes());
    floats.set_requires_grad(true);
    return floats;
  }
  // f16 or bf16, of the lower halves.
  template <typename T>
  Tensor halves_of_bits(const std::string& name) {
    std::vector<T> halves;
    for (const std::int32_t bits : golden_.tensor(name).to_vector<std::int32_t>()) {
      halves.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
    }
    return Tensor::from<T>(halves, golden_.tensor(name).shape()).to(cpu_.context());
  }
  template <typename T>
  T attribute(const std::string& name) {
    return golden_.attributes().at(name).get<T>();
  }

  void check(const std::string& result, const Tensor& ours) {
    compared_.insert(result);
    const std::string mismatch = golden_.mismatch(result, ours);
    INFO(mismatch);
    CHECK(mismatch.empty());
  }

  // Compares a result with what the file has in other units.
  void check(const std::string& result, const Tensor& expected, const Tensor& ours) {
    INFO(result);
    compared_.insert(result);
    const std::vector<double> a = test::values_of(ours);
    const std::vector<double> b = test::values_of(expected);
    CHECK(std::ranges::equal(a, b, test::same_number));
  }

  // Compares a result of dropout where its mask and the file's agree; elsewhere one of both is 0.
  void check_where_kept(const std::string& result, const Tensor& mask, const Tensor& ours) {
    INFO(result);
    compared_.insert(result);
    const std::vector<double> theirs = test::values_of(golden_.tensor("mask"));
    const std::vector<double> kept = test::values_of(mask);
    const std::vector<double> a = test::values_of(ours);
    const std::vector<double> b = test::values_of(golden_.tensor(result));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool agree = (kept[i] != 0) == (theirs[i] != 0);
      CHECK((agree ? a[i] == b[i] : a[i] * b[i] == 0));
    }
  }

  // Compares y, runs backwards from dy, and compares the gradients that the file has.
  void check_with_gradients(const Tensor& y,
                            const std::vector<std::pair<std::string, Tensor>>& inputs) {
    check("y", y);
    if (!golden_.has("dy")) return;
    sum(mul(y, constant("dy"))).backward();
    for (const auto& [gradient, input] : inputs) {
      if (golden_.has(gradient)) check(gradient, input.grad());
    }
  }

  // Fails for a result of the file that nothing was compared with.
  void check_complete() const {
    for (const std::string& result : golden_.results()) {
      INFO(result << " was not compared");
      CHECK(compared_.contains(result));
    }
  }

 private:
  OnCpu& cpu_;
  const OpCase& golden_;
  std::set<std::string> compared_;
};

// Runs `body` on every case of a family that is not an error, on each instruction set of this CPU.
template <typename Body>
void for_each_case(const std::filesystem::path& path, const std::string& family, Body body) {
  const GoldenOps ops(path);
  for (const Isa isa : test::isas_here()) {
    OnCpu cpu(2, isa);
    int cases = 0;
    for (const OpCase& golden : ops.cases(family)) {
      if (!golden.error().empty() || golden.definition().at("results").empty()) continue;
      INFO(family << "/" << golden.name() << " " << name_of(isa));
      Case c(cpu, golden);
      body(c);
      c.check_complete();
      ++cases;
    }
    CHECK(cases > 0);
  }
}

}  // namespace

TEST_CASE("conv2d: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "conv2d", [](Case& c) {
    const auto stride = c.attribute<std::int64_t>("stride");
    const auto padding = c.attribute<std::int64_t>("padding");
    const auto dilation = c.attribute<std::int64_t>("dilation");
    const Conv2dOptions options{{stride, stride},
                                {padding, padding},
                                {dilation, dilation},
                                c.attribute<std::int64_t>("groups")};
    const Tensor x = c.leaf("x"), w = c.leaf("w"), b = c.optional("b");
    c.check_with_gradients(conv2d(x, w, b, options), {{"dx", x}, {"dw", w}, {"db", b}});
  });
}

TEST_CASE("linear: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "linear", [](Case& c) {
    const Tensor x = c.leaf("x"), w = c.leaf("w"), b = c.optional("b");
    c.check_with_gradients(linear(x, w, b), {{"dx", x}, {"dw", w}, {"db", b}});
  });
}

TEST_CASE("batch_norm: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "batch_norm", [](Case& c) {
    const BatchNormParameters p{c.leaf("weight"), c.leaf("bias"),
                                c.constant("running_mean").clone(),
                                c.constant("running_var").clone()};
    const Tensor x = c.leaf("x");
    BatchNormOptions options;
    options.training = c.attribute<bool>("training");
    options.momentum = c.attribute<double>("momentum");
    options.epsilon = c.attribute<double>("eps");
    options.relu = c.attribute<nlohmann::json>("activation") == "relu";
    options.residual = c.optional("r");
    c.check_with_gradients(
        batch_norm(x, p, options),
        {{"dx", x}, {"dweight", p.weight}, {"dbias", p.bias}, {"dr", options.residual}});
    if (options.training) {
      c.check("running_mean_after", p.running_mean);
      c.check("running_var_after", p.running_var);
    }
  });
}

TEST_CASE("max_pool2d: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "max_pool", [](Case& c) {
    const auto kernel = c.attribute<std::int64_t>("kernel");
    const auto stride = c.attribute<std::int64_t>("stride");
    const auto padding = c.attribute<std::int64_t>("padding");
    const Tensor x = c.leaf("x");
    const MaxPoolResult result = max_pool2d_with_index(
        x, {{kernel, kernel}, {stride, stride}, {padding, padding}, {1, 1}, false, true});
    c.check("index", result.index);
    c.check_with_gradients(result.values, {{"dx", x}});
  });
}

TEST_CASE("avg_pool2d and global_avg_pool: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "avg_pool", [](Case& c) {
    const auto kernel = c.attribute<std::int64_t>("kernel_size");
    const auto stride = c.attribute<std::int64_t>("stride");
    const auto padding = c.attribute<std::int64_t>("padding");
    const Tensor x = c.leaf("x");
    const Tensor y = avg_pool2d(x, {{kernel, kernel},
                                    {stride, stride},
                                    {padding, padding},
                                    {1, 1},
                                    c.attribute<bool>("ceil_mode"),
                                    c.attribute<bool>("count_include_pad")});
    c.check_with_gradients(y, {{"dx", x}});
  });
  for_each_case(path, "global_avg_pool", [](Case& c) {
    const Tensor x = c.leaf("x");
    c.check_with_gradients(global_avg_pool(x), {{"dx", x}});
  });
}

TEST_CASE("relu: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "relu", [](Case& c) {
    if (c.has("x")) {
      const Tensor x = c.leaf("x");
      c.check_with_gradients(relu(x), {{"dx", x}});
      return;
    }
    // The case of special values gives bit patterns, and ones as the upstream gradient.
    const Tensor x = c.floats_of_bits("x_bits");
    const Tensor y = relu(x);
    std::vector<std::int32_t> y_bits(static_cast<std::size_t>(y.numel()));
    std::memcpy(y_bits.data(), y.data<float>(), y.bytes());
    c.check("y_bits", Tensor::from<std::int32_t>(y_bits, y.shape()));
    sum(y).backward();
    c.check("dx", x.grad());
  });
}

TEST_CASE("add, sub and mul: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "broadcast", [](Case& c) {
    const auto op = c.attribute<std::string>("op");
    const Tensor a = c.leaf("a"), b = c.leaf("b");
    const Tensor y = op == "add" ? add(a, b) : op == "sub" ? sub(a, b) : mul(a, b);
    c.check_with_gradients(y, {{"da", a}, {"db", b}});
  });
}

TEST_CASE("sum and mean: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "reduce", [](Case& c) {
    const Tensor x = c.leaf("x");
    const auto dims = c.attribute<nlohmann::json>("dims");
    const bool keep = c.attribute<bool>("keepdim");
    const bool average = c.attribute<std::string>("op") == "mean";
    Tensor y;
    if (dims.is_null()) {
      y = average ? mean(x) : sum(x);
    } else if (dims.size() == 1) {
      const int d = dims[0];
      y = average ? mean(x, {d}, keep) : sum(x, {d}, keep);
    } else if (dims.size() == 2) {
      const int d = dims[0], e = dims[1];
      y = average ? mean(x, {d, e}, keep) : sum(x, {d, e}, keep);
    } else {
      const int d = dims[0], e = dims[1], f = dims[2];
      y = average ? mean(x, {d, e, f}, keep) : sum(x, {d, e, f}, keep);
    }
    c.check_with_gradients(y, {{"dx", x}});
  });
}

TEST_CASE("log_softmax: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "log_softmax", [](Case& c) {
    const Tensor x = c.leaf("x");
    c.check_with_gradients(log_softmax(x), {{"dx", x}});
  });
}

TEST_CASE("cross_entropy: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "cross_entropy", [](Case& c) {
    const Tensor x = c.leaf("x");
    CrossEntropyOptions options;
    const auto reduction = c.attribute<std::string>("reduction");
    options.reduction = reduction == "mean"  ? Reduction::mean
                        : reduction == "sum" ? Reduction::sum
                                             : Reduction::none;
    options.label_smoothing = c.attribute<double>("label_smoothing");
    options.ignore_index = c.attribute<std::int64_t>("ignore_index");
    options.weight = c.optional("weight");
    c.check_with_gradients(cross_entropy(x, c.constant("target"), options), {{"dx", x}});
  });
}

TEST_CASE("dropout: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  // PyTorch's mask comes from a generator of its own. What an element becomes that both keep, and
  // that both drop, is the same.
  for_each_case(path, "dropout", [](Case& c) {
    const auto p = c.attribute<double>("p");
    const DropoutKey key{.seed = 11};
    const Tensor x = c.leaf("x");
    const Tensor y = dropout(x, p, key);
    sum(mul(y, c.constant("dy"))).backward();
    const Tensor mask = dropout(c.ones_like("x"), p, key);
    c.check_where_kept("y", mask, y);
    c.check_where_kept("dx", mask, x.grad());
  });
}

TEST_CASE("cast: golden/ops") {
  REQUIRE_SHARED(path, "golden/ops");
  for_each_case(path, "cast", [](Case& c) {
    const Tensor floats = c.floats_of_bits("f32_bits");
    c.check("bf16_bits", c.halves_of_bits<bfloat16>("bf16_bits"), cast(floats, DType::bf16));
    c.check("f16_bits", c.halves_of_bits<float16>("f16_bits"), cast(floats, DType::f16));
    c.check("half_as_f32_bits", c.floats_of_bits("half_as_f32_bits"),
            cast(c.halves_of_bits<float16>("half_bits"), DType::f32));
  });
}
