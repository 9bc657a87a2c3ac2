// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by longjmp. Therefore the functions that call it (`*_unwinding`) hold
// nothing that has a destructor, and everything that has one lives outside of them.
#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>

#include <csetjmp>
#include <string>
#include <vector>

#include "data/decode/formats.hpp"
#include "kernels/core/error.hpp"

namespace collar::data {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is a pointer to the whole
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

void raise(j_common_ptr decoder) {
  auto* errors = reinterpret_cast<ErrorManager*>(decoder->err);
  errors->base.format_message(decoder, errors->message);
  std::longjmp(errors->jump, 1);
}

void fail(j_common_ptr decoder, const char* message) {
  auto* errors = reinterpret_cast<ErrorManager*>(decoder->err);
  std::snprintf(errors->message, sizeof errors->message, "%s", message);
  std::longjmp(errors->jump, 1);
}

void raise_truncated(j_decompress_ptr decoder) {
  fail(reinterpret_cast<j_common_ptr>(decoder), "the file is truncated");
}

// The source is the whole file: to be asked for more means that the file ended too early.
void start_source(j_decompress_ptr) {}
boolean refill_source(j_decompress_ptr decoder) {
  raise_truncated(decoder);
  return FALSE;
}
void skip_source(j_decompress_ptr decoder, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > decoder->src->bytes_in_buffer) raise_truncated(decoder);
  decoder->src->next_input_byte += count;
  decoder->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}
void end_source(j_decompress_ptr) {}

/// A progressive file may repeat its scans for hours; real ones have about ten.
void limit_scans(j_common_ptr decoder) {
  constexpr int kMostScans = 1000;
  if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number > kMostScans) {
    fail(decoder, "more than 1000 scans");
  }
}

void ignore_message(j_common_ptr) {}
void ignore_warning(j_common_ptr decoder, int level) {
  if (level < 0) ++decoder->err->num_warnings;
}

/// Pillow's conversion of an inverted ("Adobe") CMYK pixel: `stored` holds 255 - C, 255 - M, 255 -
/// Y, 255 - K.
void cmyk_row_to_rgb(const std::uint8_t* stored, std::uint8_t* rgb, unsigned width) {
  for (unsigned x = 0; x < width; ++x, stored += 4, rgb += 3) {
    const int not_black = stored[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - stored[c]) * not_black + 128;
      rgb[c] = static_cast<std::uint8_t>(not_black - (((product >> 8) + product) >> 8));
    }
  }
}

class JpegDecoder {
 public:
  explicit JpegDecoder(std::span<const std::uint8_t> bytes) {
    decoder_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = raise;
    errors_.base.output_message = ignore_message;
    errors_.base.emit_message = ignore_warning;
    source_.next_input_byte = bytes.data();
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = start_source;
    source_.fill_input_buffer = refill_source;
    source_.skip_input_data = skip_source;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = end_source;
    progress_.progress_monitor = limit_scans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&decoder_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  void read_header() {
    if (!read_header_unwinding()) throw DataError(errors_.message);
    if (decoder_.num_components != 1 && decoder_.num_components != 3 &&
        decoder_.num_components != 4) {
      throw DataError("images of " + std::to_string(decoder_.num_components) +
                      " components cannot be read");
    }
  }
  std::int64_t width() const { return decoder_.image_width; }
  std::int64_t height() const { return decoder_.image_height; }

  void read_pixels(Image& image) {
    const bool cmyk = decoder_.num_components == 4;
    std::vector<std::uint8_t> cmyk_row(cmyk ? decoder_.image_width * std::size_t{4} : 0);
    if (!read_pixels_unwinding(image.bytes().data(), cmyk ? cmyk_row.data() : nullptr)) {
      throw DataError(errors_.message);
    }
  }

 private:
  bool read_header_unwinding() {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&decoder_);
    decoder_.src = &source_;
    decoder_.progress = &progress_;
    jpeg_read_header(&decoder_, TRUE);
    return true;
  }

  bool read_pixels_unwinding(std::uint8_t* rgb, std::uint8_t* cmyk_row) {
    if (setjmp(errors_.jump) != 0) return false;
    decoder_.out_color_space = cmyk_row != nullptr ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&decoder_);
    while (decoder_.output_scanline < decoder_.output_height) {
      std::uint8_t* rgb_row =
          rgb + std::size_t{decoder_.output_scanline} * decoder_.output_width * Image::kChannels;
      JSAMPROW row = cmyk_row != nullptr ? cmyk_row : rgb_row;
      jpeg_read_scanlines(&decoder_, &row, 1);
      if (cmyk_row != nullptr) cmyk_row_to_rgb(cmyk_row, rgb_row, decoder_.output_width);
    }
    // Reads on to the end marker; Pillow does so too, and refuses a file that lacks it.
    jpeg_finish_decompress(&decoder_);
    return true;
  }

  jpeg_decompress_struct decoder_{};
  ErrorManager errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
};

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeLimits& limits) {
  JpegDecoder decoder(bytes);
  decoder.read_header();
  check_image_size(decoder.width(), decoder.height(), limits);
  Image image({static_cast<int>(decoder.width()), static_cast<int>(decoder.height())});
  decoder.read_pixels(image);
  return image;
}

}  // namespace collar::data
