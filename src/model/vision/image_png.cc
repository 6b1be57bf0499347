#include <png.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <vector>

#include "model/vision/image_formats.h"

namespace rematch::vision {
namespace {

// Output of libpng: samples as stored (1, 2 and 4 bits widened to a byte but not scaled, 16 bits
// reduced to one byte), palette and transparency.
struct RawPng {
  int color_type = 0;
  int bit_depth = 0;
  size_t num_channels = 0;
  std::vector<uint8_t> samples;                       // [height, width, channels]
  std::array<std::array<uint8_t, 4>, 256> palette{};  // RGBA
  bool has_key = false;                               // one grey level or colour is transparent
  std::array<unsigned, 3> key{};
};

// Plain data that survives libpng's longjmp; see run_decoder.
struct PngState {
  std::string_view bytes;
  size_t offset = 0;
  char message[256] = {};
  png_structp png = nullptr;
  png_infop info = nullptr;
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::strncpy(state->message, message, sizeof state->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, png_size_t size) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (size > state->bytes.size() - state->offset) png_error(png, "the file ends too early");
  std::memcpy(out, state->bytes.data() + state->offset, size);
  state->offset += size;
}

void read_palette(const PngState& state, RawPng& raw) {
  // indices beyond the palette are black, as in Pillow
  for (auto& color : raw.palette) color = {0, 0, 0, 255};
  png_colorp colors = nullptr;
  int num_colors = 0;
  if (png_get_PLTE(state.png, state.info, &colors, &num_colors) != 0) {
    for (int i = 0; i < std::min(num_colors, 256); ++i) {
      raw.palette[i] = {colors[i].red, colors[i].green, colors[i].blue, 255};
    }
  }
  png_bytep alphas = nullptr;
  int num_alphas = 0;
  png_color_16p key = nullptr;
  if (png_get_tRNS(state.png, state.info, &alphas, &num_alphas, &key) == 0) return;
  if (raw.color_type == PNG_COLOR_TYPE_PALETTE) {
    for (int i = 0; i < std::min(num_alphas, 256); ++i) raw.palette[i][3] = alphas[i];
  } else if (key != nullptr) {
    raw.has_key = true;
    raw.key = raw.color_type == PNG_COLOR_TYPE_GRAY
                  ? std::array<unsigned, 3>{key->gray, key->gray, key->gray}
                  : std::array<unsigned, 3>{key->red, key->green, key->blue};
  }
}

// Reads header and palette. The caller owns all memory, because libpng may longjmp. @return false
// with state.message set on failure
bool read_start(PngState& state, const ImageHeader& header, RawPng& raw) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  png_set_read_fn(state.png, &state, on_read);
  png_set_user_limits(state.png, INT_MAX, INT_MAX);  // the area was checked with the header
  png_read_info(state.png, state.info);
  png_set_packing(state.png);
  // Like Pillow: keep the high byte of 16-bit channels, but clamp 16-bit grey to 255.
  if (!header.is_deep_grey) png_set_strip_16(state.png);
  png_set_interlace_handling(state.png);
  png_read_update_info(state.png, state.info);
  raw.color_type = png_get_color_type(state.png, state.info);
  raw.bit_depth = png_get_bit_depth(state.png, state.info);
  raw.num_channels = png_get_channels(state.png, state.info);
  read_palette(state, raw);
  return true;
}

// @param rows  one pointer per row, into raw.samples
bool read_rows(PngState& state, png_bytepp rows) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  png_read_image(state.png, rows);
  png_read_end(state.png, nullptr);
  return true;
}

// Reduces big-endian two-byte samples to one byte: levels above 255 become white, as in Pillow.
void clamp_deep_samples(RawPng& raw) {
  for (size_t i = 0; i < raw.samples.size() / 2; ++i)
    raw.samples[i] = raw.samples[2 * i] != 0 ? 255 : raw.samples[2 * i + 1];
  raw.samples.resize(raw.samples.size() / 2);
}

bool run_decoder(PngState& state, const ImageHeader& header, RawPng& raw, int& stored_depth) {
  stored_depth = static_cast<unsigned char>(state.bytes[24]);
  if (!read_start(state, header, raw)) return false;
  const size_t row_size =
      static_cast<size_t>(header.size.width_px) * raw.num_channels * (header.is_deep_grey ? 2 : 1);
  if (png_get_image_width(state.png, state.info) != static_cast<unsigned>(header.size.width_px) ||
      png_get_image_height(state.png, state.info) != static_cast<unsigned>(header.size.height_px) ||
      png_get_rowbytes(state.png, state.info) != row_size) {
    std::strcpy(state.message, "the header appears twice");
    return false;
  }
  raw.samples.resize(row_size * static_cast<size_t>(header.size.height_px));
  std::vector<png_bytep> rows(static_cast<size_t>(header.size.height_px));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = raw.samples.data() + y * row_size;
  if (!read_rows(state, rows.data())) return false;
  if (header.is_deep_grey) clamp_deep_samples(raw);
  return true;
}

// Factor that spreads grey levels of fewer than 8 bits over 0..255.
unsigned grey_scale(int stored_depth) {
  return stored_depth == 1 ? 255 : stored_depth == 2 ? 85 : stored_depth == 4 ? 17 : 1;
}

// The transparent grey level after scaling. Like Pillow: scale it for 1 bit only, otherwise use its
// low byte.
unsigned scaled_key(unsigned key, int stored_depth) {
  return stored_depth == 1 ? (key != 0 ? 255 : 0) : key & 0xFF;
}

void convert_grey(const RawPng& raw, int stored_depth, Image& image) {
  const bool has_alpha = raw.num_channels == 2;
  const unsigned scale = grey_scale(stored_depth), key = scaled_key(raw.key[0], stored_depth);
  for (size_t pixel = 0; pixel < image.rgb.size() / 3; ++pixel) {
    const auto level = static_cast<uint8_t>(raw.samples[pixel * raw.num_channels] * scale);
    const uint8_t alpha = has_alpha                     ? raw.samples[pixel * 2 + 1]
                          : raw.has_key && level == key ? 0
                                                        : 255;
    const uint8_t value = composite_on_white(level, alpha);
    std::fill_n(image.rgb.begin() + (pixel * 3), 3, value);
  }
}

void convert_palette(const RawPng& raw, Image& image) {
  for (size_t pixel = 0; pixel < raw.samples.size(); ++pixel) {
    const auto& color = raw.palette[raw.samples[pixel]];
    for (size_t channel = 0; channel < 3; ++channel)
      image.rgb[pixel * 3 + channel] = composite_on_white(color[channel], color[3]);
  }
}

void convert_rgb(RawPng& raw, Image& image) {
  if (raw.num_channels == 3 && !raw.has_key) {
    image.rgb = std::move(raw.samples);
    return;
  }
  const auto is_key = [&](const uint8_t* color) {
    return raw.has_key && color[0] == (raw.key[0] & 0xFF) && color[1] == (raw.key[1] & 0xFF) &&
           color[2] == (raw.key[2] & 0xFF);
  };
  for (size_t pixel = 0; pixel < image.rgb.size() / 3; ++pixel) {
    const uint8_t* color = raw.samples.data() + pixel * raw.num_channels;
    const uint8_t alpha = raw.num_channels == 4 ? color[3] : is_key(color) ? 0 : 255;
    for (size_t channel = 0; channel < 3; ++channel)
      image.rgb[pixel * 3 + channel] = composite_on_white(color[channel], alpha);
  }
}

}  // namespace

Image decode_png(std::string_view bytes, const ImageHeader& header, const std::string& where) {
  PngState state{.bytes = bytes};
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
  if (state.png != nullptr) state.info = png_create_info_struct(state.png);
  struct Guard {
    PngState& state;
    ~Guard() { png_destroy_read_struct(&state.png, &state.info, nullptr); }
  } guard{state};
  REMATCH_CHECK(state.info != nullptr, "libpng could not allocate memory");

  RawPng raw;
  int stored_depth = 0;
  if (!run_decoder(state, header, raw, stored_depth))
    throw corrupt_image(where, "PNG", state.message);
  Image image = black_image(header.size);
  if (raw.color_type == PNG_COLOR_TYPE_PALETTE) {
    convert_palette(raw, image);
  } else if ((raw.color_type & PNG_COLOR_MASK_COLOR) != 0) {
    convert_rgb(raw, image);
  } else {
    convert_grey(raw, stored_depth, image);
  }
  return image;
}

}  // namespace rematch::vision
