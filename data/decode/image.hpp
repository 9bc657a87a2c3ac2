// SPDX-License-Identifier: Apache-2.0
// Image: what decoders make and transforms change. Always 8-bit RGB, interleaved, rows from top to
// bottom without padding: the bytes of Pillow's `Image.convert("RGB")`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace collar::data {

struct ImageSize {
  int width = 0;
  int height = 0;

  std::int64_t pixels() const { return std::int64_t{width} * height; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// Pixels of somebody else: a rectangle of an image. `stride` is the bytes from one row to the
/// next.
struct ImageView {
  const std::uint8_t* data = nullptr;
  ImageSize size;
  std::ptrdiff_t stride = 0;

  const std::uint8_t* row(int y) const { return data + y * stride; }
};

class Image {
 public:
  static constexpr int kChannels = 3;

  /// No pixels at all.
  Image() = default;
  /// Uninitialised pixels. Both extents are positive; whoever reads them from a file has checked
  /// them against DecodeLimits.
  explicit Image(ImageSize size)
      : size_(size), pixels_(std::make_unique_for_overwrite<std::uint8_t[]>(byte_count())) {}

  ImageSize size() const { return size_; }
  int width() const { return size_.width; }
  int height() const { return size_.height; }
  std::ptrdiff_t stride() const { return std::ptrdiff_t{size_.width} * kChannels; }

  std::uint8_t* row(int y) { return pixels_.get() + y * stride(); }
  const std::uint8_t* row(int y) const { return pixels_.get() + y * stride(); }
  std::span<std::uint8_t> bytes() { return {pixels_.get(), byte_count()}; }
  std::span<const std::uint8_t> bytes() const { return {pixels_.get(), byte_count()}; }

  ImageView view() const { return {pixels_.get(), size_, stride()}; }
  /// The rectangle with this top left corner; it has to lie inside the image.
  ImageView view(int left, int top, ImageSize size) const {
    return {row(top) + std::ptrdiff_t{left} * kChannels, size, stride()};
  }

 private:
  std::size_t byte_count() const { return static_cast<std::size_t>(size_.pixels()) * kChannels; }

  ImageSize size_;
  std::unique_ptr<std::uint8_t[]> pixels_;
};

}  // namespace collar::data
