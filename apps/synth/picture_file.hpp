// SPDX-License-Identifier: Apache-2.0
// Pictures as files: JPEG by libjpeg-turbo (the accurate transform, whose bytes do not depend on
// the instruction set), PNG by stb_image_write.
#pragma once

#include <filesystem>
#include <string>

#include "apps/synth/canvas.hpp"

namespace collar::apps::synth {

/// The bytes of a baseline JPEG, 4:2:0; `quality` 1 to 100. Throws DataError.
std::string encode_jpeg(const Picture& picture, int quality);
/// The bytes of an 8-bit RGB PNG. Throws DataError.
std::string encode_png(const Picture& picture);
/// Replaces the file if it exists. Throws DataError with the system's reason.
void write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace collar::apps::synth
