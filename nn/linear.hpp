// SPDX-License-Identifier: Apache-2.0
// The fully connected layer.
#pragma once

#include "nn/module.hpp"

namespace collar::nn {

/// weight [out, in] and bias [out], both uniform in +-1/sqrt(in) at first, as torch.nn.Linear's.
class Linear final : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features);

  Tensor forward(const Tensor& x) override;
  std::int64_t in_features() const { return weight_.size(1); }
  std::int64_t out_features() const { return weight_.size(0); }

 private:
  void reset_parameters(std::uint64_t seed, const std::string& path) override;

  Tensor weight_;
  Tensor bias_;
};

}  // namespace collar::nn
