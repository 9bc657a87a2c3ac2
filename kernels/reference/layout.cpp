// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/layout.hpp"

#include "kernels/core/dispatch.hpp"
#include "kernels/core/image_index.hpp"

namespace collar::kernels::reference {
namespace {

template <typename From, typename To>
void convert(ConstView x, View y) {
  const ImageIndex from(x.shape, x.layout);
  const ImageIndex to(y.shape, y.layout);
  for (std::int64_t n = 0; n < x.shape[0]; ++n)
    for (std::int64_t c = 0; c < x.shape[1]; ++c)
      for (std::int64_t h = 0; h < x.shape[2]; ++h)
        for (std::int64_t w = 0; w < x.shape[3]; ++w)
          y.as<To>()[to(n, c, h, w)] = To(static_cast<float>(x.as<From>()[from(n, c, h, w)]));
}

}  // namespace

void convert_layout(ConstView x, View y) {
  dispatch_float(x.dtype, [&]<typename From>(std::type_identity<From>) {
    dispatch_float(y.dtype, [&]<typename To>(std::type_identity<To>) { convert<From, To>(x, y); });
  });
}

}  // namespace collar::kernels::reference
