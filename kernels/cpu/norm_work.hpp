// SPDX-License-Identifier: Apache-2.0
// How batch normalisation is shared out. A strip of channels is one thread's work, statistics and
// application back to back, so that the second pass finds the strip in the cache (3 MB of a 56x56
// activation of 16 images). With fewer strips than threads, or when ranks have to agree on the
// statistics first, slices (one image of one strip) are shared out instead. Sums are formed slice
// by slice either way, so the bits are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/core/element.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/strips.hpp"
#include "kernels/cpu/vector/loops.hpp"

namespace collar::kernels {

inline float value_or(const ConstView& view, std::int64_t i, float otherwise) {
  return view ? view.as<float>()[i] : otherwise;
}

/// How the work on one activation is cut: a slice is one image of one strip.
class Work {
 public:
  Work(const CpuContext& context, const ConstView& x)
      : context_(context),
        loops_(loops_for(context.isa())),
        strips_(x.shape, x.layout, loops_.lanes),
        dtype_(x.dtype) {}

  const Loops& loops() const { return loops_; }
  const ChannelStrips& strips() const { return strips_; }
  std::int64_t slices() const { return strips_.count() * strips_.images(); }
  std::int64_t values_per_channel() const { return strips_.images() * strips_.pixels(); }
  bool byte_aligned() const { return strips_.byte_aligned(); }

  Run run(const Strip& strip) const {
    return {dtype_, strip.lanes, strips_.pixels(), strips_.pixel_stride()};
  }
  std::int64_t position(const Strip& strip, std::int64_t image) const {
    return strip.offset + image * strips_.image_stride();
  }

  /// Whether a strip's results are stored non-temporally, past the caches: when the tensor is too
  /// large to be still there when its reader comes, and vectors are aligned. The values are the
  /// same.
  bool stores_non_temporal(const View& view, const Strip& strip) const {
    constexpr std::size_t kCached = std::size_t{32} << 20;
    return view.bytes() > kCached && strip.lanes > 1 && strips_.pixel_stride() % strip.lanes == 0 &&
           reinterpret_cast<std::uintptr_t>(view.data) % CachingAllocator::kAlignment == 0;
  }

  /// body(strip number, strip)
  template <typename Body>
  void for_each_strip(const Body& body) const {
    const std::int64_t elements = values_per_channel() * strips_[0].lanes;
    parallel_for(context_, strips_.count(), elements, [&](std::int64_t s) { body(s, strips_[s]); });
  }
  /// body(strip number, strip, image)
  template <typename Body>
  void for_each_slice(const Body& body) const {
    const std::int64_t elements = strips_.pixels() * strips_[0].lanes;
    parallel_for(context_, slices(), elements, [&](std::int64_t slice) {
      const std::int64_t s = slice / strips_.images();
      body(s, strips_[s], slice % strips_.images());
    });
  }

  /// The two passes over an activation, whichever way it is shared out: `sum(strip, image)` gives
  /// the Sums of a slice, `add(total, more, lanes)` collects them in the order of the images,
  /// `settle(first strip, totals)` sees the totals of some strips (of all of them at once unless
  /// `alone`) and may change them, and `apply(strip, image, total)` works on a slice with them.
  template <typename Sums, typename Sum, typename Add, typename Settle, typename Apply>
  void in_two_passes(CpuContext& context, bool alone, const Sum& sum, const Add& add,
                     const Settle& settle, const Apply& apply) const {
    const std::int64_t images = strips_.images();
    if (alone && enough_strips()) {
      return for_each_strip([&](std::int64_t s, const Strip& strip) {
        Sums total;
        for (std::int64_t n = 0; n < images; ++n) add(total, sum(strip, n), strip.lanes);
        settle(s, std::span(&total, 1));
        for (std::int64_t n = 0; n < images; ++n) apply(strip, n, total);
      });
    }
    Scratch<Sums> by_slice(context, slices());
    for_each_slice([&](std::int64_t s, const Strip& strip, std::int64_t image) {
      by_slice[s * images + image] = sum(strip, image);
    });
    Scratch<Sums> by_strip(context, strips_.count());
    for (std::int64_t s = 0; s < strips_.count(); ++s) {
      by_strip[s] = {};
      for (std::int64_t n = 0; n < images; ++n) {
        add(by_strip[s], by_slice[s * images + n], strips_[s].lanes);
      }
    }
    settle(0, std::span(by_strip.data(), static_cast<std::size_t>(strips_.count())));
    for_each_slice([&](std::int64_t s, const Strip& strip, std::int64_t image) {
      apply(strip, image, by_strip[s]);
    });
  }

 private:
  bool enough_strips() const { return strips_.count() >= context_.threads(); }

  const CpuContext& context_;
  const Loops& loops_;
  ChannelStrips strips_;
  DType dtype_;
};

}  // namespace collar::kernels
