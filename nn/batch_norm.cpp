// SPDX-License-Identifier: Apache-2.0
#include "nn/batch_norm.hpp"

#include "nn/init.hpp"

namespace collar::nn {

BatchNorm2d::BatchNorm2d(std::int64_t channels, const Options& options)
    : options_(options),
      weight_(add_parameter("weight", {channels})),
      bias_(add_parameter("bias", {channels})),
      running_mean_(add_buffer("running_mean", Tensor::zeros({channels}))),
      running_var_(add_buffer("running_var", Tensor::full({channels}, 1))),
      batches_tracked_(add_buffer("num_batches_tracked", Tensor::zeros({}, DType::i64))) {
  fill_constant(weight_, 1);
}

Tensor BatchNorm2d::forward(Tensor x, const Epilogue& epilogue) {
  const BatchNormOptions options{.training = training(),
                                 .track_statistics = track_statistics_,
                                 .momentum = options_.momentum,
                                 .epsilon = options_.epsilon,
                                 .relu = epilogue.relu,
                                 .residual = epilogue.residual,
                                 .exchange = exchange_};
  Tensor y = batch_norm(std::move(x), {weight_, bias_, running_mean_, running_var_}, options);
  if (training() && track_statistics_) {
    ++*batches_tracked_.data<std::int64_t>();
    batches_tracked_.changed_in_place();
  }
  return y;
}

void BatchNorm2d::zero_weight() {
  fill_constant(weight_, 0);
}

void BatchNorm2d::reset_parameters(std::uint64_t /*seed*/, const std::string& /*path*/) {
  fill_constant(weight_, 1);
  fill_constant(bias_, 0);
}

void set_track_statistics(Module& model, bool track) {
  model.for_each_module([track](Module& module, const std::string&) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&module)) norm->set_track_statistics(track);
  });
}

void set_statistics_exchange(Module& model, const StatisticsExchange* exchange) {
  model.for_each_module([exchange](Module& module, const std::string&) {
    if (auto* norm = dynamic_cast<BatchNorm2d*>(&module)) norm->set_exchange(exchange);
  });
}

}  // namespace collar::nn
