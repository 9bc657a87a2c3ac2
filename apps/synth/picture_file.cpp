// SPDX-License-Identifier: Apache-2.0
#include "apps/synth/picture_file.hpp"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "kernels/core/error.hpp"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace collar::apps::synth {

std::string encode_jpeg(const Picture& picture, int quality) {
  const auto fail = [&](const char* reason) {
    throw DataError(fmt::format("cannot encode a JPEG of {} x {} pixels: {}", picture.width,
                                picture.height, reason));
  };
  if (picture.width < 1 || picture.height < 1) fail("it is empty");
  const auto close = [](void* handle) { tjDestroy(handle); };
  const std::unique_ptr<void, decltype(close)> compressor(tjInitCompress(), close);
  std::string bytes(tjBufSize(picture.width, picture.height, TJSAMP_420), '\0');
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  unsigned long size = bytes.size();  // NOLINT(google-runtime-int): turbojpeg's type
  if (compressor == nullptr ||
      tjCompress2(compressor.get(), picture.rgb.data(), picture.width, 0, picture.height, TJPF_RGB,
                  &out, &size, TJSAMP_420, quality, TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT) != 0) {
    fail(tjGetErrorStr2(compressor.get()));
  }
  bytes.resize(size);
  return bytes;
}

std::string encode_png(const Picture& picture) {
  std::string bytes;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data),
                                          static_cast<std::size_t>(size));
  };
  if (stbi_write_png_to_func(append, &bytes, picture.width, picture.height, 3, picture.rgb.data(),
                             3 * picture.width) == 0) {
    throw DataError(
        fmt::format("cannot encode a PNG of {} x {} pixels", picture.width, picture.height));
  }
  return bytes;
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    throw DataError(fmt::format("cannot write {} ({} bytes): {}", path.string(), bytes.size(),
                                std::strerror(errno)));
  }
}

}  // namespace collar::apps::synth
