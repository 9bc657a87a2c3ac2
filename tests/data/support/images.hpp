// SPDX-License-Identifier: Apache-2.0
// The images that golden values speak of: photos, and images made by a formula
// (golden/README-data.md).
#pragma once

#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "data/decode/decode.hpp"
#include "data/transform/resize.hpp"

namespace collar::test {

/// `syn`, `low`, `quant` or `flat`.
inline data::Image formula_image(const std::string& kind, data::ImageSize size) {
  data::Image image(size);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int syn = (7 * x + 13 * y + 29 * c + 5 * ((x * y) % 31)) & 255;
        constexpr int kFlat[3] = {100, 37, 200};
        const int value = kind == "syn"     ? syn
                          : kind == "low"   ? syn / 3 + 40
                          : kind == "quant" ? ((17 * x + 31 * y + 53 * c) % 7) * 36
                          : kind == "flat"  ? kFlat[c]
                                            : throw std::runtime_error("no formula " + kind);
        image.row(y)[3 * x + c] = static_cast<std::uint8_t>(value);
      }
    }
  }
  return image;
}

/// "syn_500x375", "pet224:pets/…" (after Resize((224, 224))), or a path below `photos`.
inline data::Image source_image(const std::string& source, const std::filesystem::path& photos) {
  if (source.rfind("pet224:", 0) == 0) {
    return data::resize(data::load_image(photos / source.substr(7)).view(), {224, 224});
  }
  const auto underscore = source.find('_');
  data::ImageSize size;
  if (source.find('/') == std::string::npos && underscore != std::string::npos &&
      std::sscanf(source.c_str() + underscore, "_%dx%d", &size.width, &size.height) == 2) {
    return formula_image(source.substr(0, underscore), size);
  }
  return data::load_image(photos / source);
}

}  // namespace collar::test
