#include <fmt/core.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

// jpeglib.h needs FILE and size_t before it.
#include <jerror.h>
#include <jpeglib.h>

#include "model/vision/image_formats.h"

namespace rematch::vision {
namespace {

// A malicious progressive file may repeat scans of a huge image; real files have about ten.
constexpr int kMaxScans = 500;

// libjpeg reports errors through longjmp, which skips destructors and may lose changed locals. So
// the caller owns this struct and the pixels, and run_decoder has only trivial locals.
struct JpegState {
  jpeg_error_mgr errors;  // first member: get_state() casts a pointer to it
  jpeg_decompress_struct info;
  jpeg_progress_mgr progress;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

JpegState& get_state(j_common_ptr info) { return *reinterpret_cast<JpegState*>(info->err); }

[[noreturn]] void abort_decoding(j_common_ptr info) {
  JpegState& state = get_state(info);
  if (state.message[0] == '\0') state.errors.format_message(info, state.message);
  longjmp(state.jump, 1);
}

// Pillow continues after these warnings: no pixel is lost.
bool is_harmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR;
}

// After any other warning (premature end, bad Huffman code, …) libjpeg invents pixels.
void on_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) abort_decoding(info);
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  std::strcpy(get_state(info).message, "too many scans");
  abort_decoding(info);
}

// @return false with state.message set when the stream is bad. @param samples  [height, width, 3 or
// 4]
bool run_decoder(std::string_view bytes, JpegState& state, const ImageHeader& header,
                 uint8_t* samples) {
  const auto width = static_cast<unsigned>(header.size.width_px),
             height = static_cast<unsigned>(header.size.height_px);
  const int num_channels = header.is_cmyk ? 4 : 3;
  jpeg_decompress_struct& info = state.info;
  if (setjmp(state.jump) != 0) return false;
  jpeg_create_decompress(&info);
  info.progress = &state.progress;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = header.is_cmyk ? JCS_CMYK : JCS_RGB;  // grey is spread over the channels
  jpeg_start_decompress(&info);
  if (info.output_width != width || info.output_height != height ||
      info.output_components != num_channels) {
    std::strcpy(state.message, "the frame header appears twice");
    return false;
  }
  while (info.output_scanline < height) {
    JSAMPROW row = samples + static_cast<size_t>(num_channels) * width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

// Pillow's arithmetic, without colour profiles. Inks are stored inverted, as Adobe's programs do:
// 255 means no ink.
void convert_cmyk(const std::vector<uint8_t>& inks, Image& image) {
  for (size_t pixel = 0; pixel < inks.size() / 4; ++pixel) {
    const uint8_t* stored = inks.data() + pixel * 4;
    const unsigned light = stored[3];
    for (size_t channel = 0; channel < 3; ++channel) {
      const unsigned product = (255u - stored[channel]) * light + 128;
      image.rgb[pixel * 3 + channel] =
          static_cast<uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const ImageHeader& header, const std::string& where) {
  Image image = black_image(header.size);
  JpegState state;
  std::memset(&state, 0, sizeof state);
  state.info.err = jpeg_std_error(&state.errors);
  state.errors.error_exit = abort_decoding;
  state.errors.emit_message = on_message;
  state.progress.progress_monitor = on_progress;
  std::vector<uint8_t> inks(header.is_cmyk ? image.rgb.size() / 3 * 4 : 0);
  const bool good =
      run_decoder(bytes, state, header, header.is_cmyk ? inks.data() : image.rgb.data());
  jpeg_destroy_decompress(&state.info);
  if (!good) throw corrupt_image(where, "JPEG", state.message);
  if (header.is_cmyk) convert_cmyk(inks, image);
  return image;
}

}  // namespace rematch::vision
