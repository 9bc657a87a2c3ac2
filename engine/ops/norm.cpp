// SPDX-License-Identifier: Apache-2.0
#include "engine/ops/norm.hpp"

#include "engine/autograd/node.hpp"
#include "engine/ops/affine.hpp"
#include "engine/ops/dispatch.hpp"
#include "engine/ops/layout.hpp"

namespace collar {
namespace {

using autograd::BackwardCall;
using autograd::Saved;
using ops::optional_view;
using ops::require;

constexpr const char* kOp = "batch_norm";

void check(const Tensor& x, const BatchNormParameters& p, const BatchNormOptions& o) {
  require(x.rank() == 4 || x.rank() == 2, kOp,
          "input has shape {}, expected [N, C, H, W] or [N, C]", to_string(x.shape()));
  require(x.dtype() == DType::f32 || x.dtype() == DType::bf16, kOp,
          "input has type {}, expected f32 or bf16", name_of(x.dtype()));
  for (const Tensor* parameter : {&p.weight, &p.bias, &p.running_mean, &p.running_var}) {
    require(!parameter->defined() ||
                (parameter->dtype() == DType::f32 && parameter->shape() == Shape{x.size(1)}),
            kOp, "a parameter is {}, expected f32 [{}]", describe(*parameter), x.size(1));
  }
  require(
      !o.residual.defined() || (o.residual.shape() == x.shape() && o.residual.dtype() == x.dtype()),
      kOp, "the residual is {}, the input {}", describe(o.residual), describe(x));
  require(o.training || (p.running_mean.defined() && p.running_var.defined()), kOp,
          "evaluation needs running statistics");
  // What a group has together is known when its statistics have been exchanged.
  const bool alone = o.training && o.exchange == nullptr;
  require(!alone || x.numel() / std::max<std::int64_t>(1, x.size(1)) > 1, kOp,
          "expected more than 1 value per channel when training, got input of shape {}",
          to_string(x.shape()));
}

// What the forward pass leaves for the backward pass.
struct Kept {
  Tensor mean;
  Tensor inv_std;
  Tensor mask;
};

Kept forward(DeviceContext& context, const Tensor& x, const Tensor& residual,
             const BatchNormParameters& p, const BatchNormOptions& o, Tensor& y, bool recording) {
  Kept kept;
  const Shape channels{x.size(1)};
  kept.inv_std = Tensor::empty(channels, DType::f32, &context);
  if (recording && o.relu) kept.mask = Tensor::empty({(x.numel() + 7) / 8}, DType::u8, &context);
  const View mask = kept.mask.defined() ? kept.mask.view() : View{};
  if (!o.training) {
    kept.mean = p.running_mean;
    ops::on(context, [&](auto& device) {
      kernels::batch_norm_inference(
          device, {x.view(), optional_view(residual), optional_view(p.weight),
                   optional_view(p.bias), p.running_mean.view(), p.running_var.view(), y.view(),
                   mask, kept.inv_std.view(), o.epsilon, o.relu});
    });
    return kept;
  }
  kept.mean = Tensor::empty(channels, DType::f32, &context);
  const bool tracking = o.track_statistics && p.running_mean.defined() && p.running_var.defined();
  Tensor running_mean = p.running_mean;
  Tensor running_var = p.running_var;
  ops::on(context, [&](auto& device) {
    kernels::BatchNormTraining args;
    args.x = x.view();
    args.residual = optional_view(residual);
    args.weight = optional_view(p.weight);
    args.bias = optional_view(p.bias);
    args.y = y.view();
    args.mask = mask;
    args.mean = kept.mean.view();
    args.inv_std = kept.inv_std.view();
    if (tracking) {
      args.running_mean = running_mean.view();
      args.running_var = running_var.view();
    }
    args.momentum = o.momentum;
    args.epsilon = o.epsilon;
    args.relu = o.relu;
    kernels::batch_norm_training(device, args,
                                 o.exchange != nullptr ? *o.exchange : StatisticsExchange{});
  });
  if (tracking) {
    running_mean.changed_in_place();
    running_var.changed_in_place();
  }
  return kept;
}

}  // namespace

Tensor batch_norm(Tensor x, const BatchNormParameters& parameters,
                  const BatchNormOptions& options) {
  check(x, parameters, options);
  DeviceContext& context =
      ops::context_of(kOp, {&x, &parameters.weight, &parameters.bias, &parameters.running_mean,
                            &parameters.running_var, &options.residual});
  const Tensor residual =
      options.residual.defined() ? converted(options.residual, x.layout()) : options.residual;
  const bool recording =
      autograd::wants_grad({&x, &parameters.weight, &parameters.bias, &options.residual});
  Tensor y = !recording && x.is_sole_owner()
                 ? x.detach()
                 : Tensor::empty(x.shape(), x.dtype(), &context, x.layout());
  const Kept kept = forward(context, x, residual, parameters, options, y, recording);
  if (!recording) return y;

  const bool needs_x =
      x.requires_grad() || (parameters.weight.defined() && parameters.weight.requires_grad());
  return autograd::record(
      kOp, y, {x, parameters.weight, parameters.bias, options.residual},
      [&context, exchange = options.exchange, training = options.training,
       saved_x = needs_x ? Saved(x) : Saved(), shape = x.shape(), dtype = x.dtype(),
       layout = x.layout(), weight = Saved(parameters.weight), mean = Saved(kept.mean),
       inv_std = Saved(kept.inv_std), mask = Saved(kept.mask)](BackwardCall& call) {
        const auto terms = call.dy_terms();
        Tensor dx = call.needs(0) ? Tensor::empty(shape, dtype, &context, layout) : Tensor();
        Tensor dresidual = call.needs(3) ? Tensor::empty(shape, dtype, &context, layout) : Tensor();
        const ops::AffineTargets affine = ops::affine_targets(call, context, 1, 2);
        ops::on(context, [&](auto& device) {
          kernels::BatchNormBackward args;
          args.dy = {terms[0].view(), terms.size() > 1 ? terms[1].view() : ConstView{}};
          args.x = saved_x ? saved_x.get().view() : ConstView{nullptr, dtype, shape, layout};
          args.weight = optional_view(weight.get());
          args.mean = mean.get().view();
          args.inv_std = inv_std.get().view();
          args.mask = optional_view(mask.get());
          if (dx.defined()) args.dx = dx.view();
          if (dresidual.defined()) args.dresidual = dresidual.view();
          args.dweight = affine.weight;
          args.dbias = affine.bias;
          args.accumulate_affine = affine.accumulate;
          args.batch_statistics = training;
          kernels::batch_norm_backward(device, args,
                                       exchange != nullptr ? *exchange : StatisticsExchange{});
        });
        if (dx.defined()) call.give(0, std::move(dx));
        if (dresidual.defined()) call.give(3, std::move(dresidual));
      },
      2);
}

}  // namespace collar
