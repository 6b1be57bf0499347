#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "model/vision/patches.h"
#include "model/vision/resample.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vision/resize_golden.h"

namespace rematch {
namespace {

PatchOptions resizing() {
  PatchOptions options;
  options.do_resize = true;
  options.min_pixels = 1024;
  options.max_pixels = 16384;
  return options;
}

Image grey_ramp(int width_px, int height_px) {
  Image image{.width_px = width_px, .height_px = height_px, .rgb = {}};
  for (int i = 0; i < width_px * height_px * 3; ++i)
    image.rgb.push_back(static_cast<uint8_t>(i / 3 % 256));
  return image;
}

}  // namespace

TEST(ResizeBicubic, EqualsBothProcessorsOfTransformersBitForBit) {
  test::expect_processed_as_transformers(test::source_path("tests/golden/vision_resize"));
}

TEST(ResizeBicubic, TheTwoBackendsDiffer) {
  Image image = grey_ramp(40, 200);
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(i * i % 251);
  const ImageSize size{.width_px = 32, .height_px = 64};
  EXPECT_NE(resize_bicubic(image, size, ImageBackend::kPil).rgb,
            resize_bicubic(image, size, ImageBackend::kTorchvision).rgb);
}

TEST(ProcessedSize, IsKnownForAPhotographAndATinyImage) {
  EXPECT_EQ(processed_size({.width_px = 640, .height_px = 427}, resizing(), "x"),
            (ImageSize{.width_px = 128, .height_px = 96}));
  EXPECT_EQ(processed_size({.width_px = 5, .height_px = 5}, resizing(), "x"),
            (ImageSize{.width_px = 32, .height_px = 32}));
  EXPECT_EQ(processed_grid({.width_px = 5, .height_px = 5}, resizing(), "x"), (GridThw{1, 2, 2}));
}

TEST(ProcessedSize, RefusesWhatTheProcessorWouldChangeWhenAsked) {
  PatchOptions options = resizing();
  options.on_resize = ImageResize::kRefuse;
  EXPECT_EQ(processed_size({.width_px = 96, .height_px = 64}, options, "x"),
            (ImageSize{.width_px = 96, .height_px = 64}));
  const UserError error = test::catch_user_error(
      [&] { processed_size({.width_px = 96, .height_px = 50}, options, "photo.png"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "photo.png");
  EXPECT_NE(error.problems()[0].what.find("96 x 50 px (width x height) would become 96 x 64 px"),
            std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("96 x 64"), std::string::npos);
  // A legal multiple is not a legal size when it is too small.
  options.min_pixels = 65536;
  EXPECT_THROW(processed_size({.width_px = 96, .height_px = 64}, options, "x"), UserError);
}

TEST(Patchify, ResizesBeforeItCuts) {
  const Image photo = grey_ramp(100, 70);
  const Patches patches = patchify(photo, resizing(), "x");
  EXPECT_EQ(patches.grid_thw, (GridThw{1, 4, 6}));
  EXPECT_EQ(patches.pixel_values, patchify(resize_bicubic(photo, {.width_px = 96, .height_px = 64},
                                                          ImageBackend::kTorchvision),
                                           PatchOptions{}, "x")
                                      .pixel_values);
}

// The pictures of pixel_qwen3.f32 and pixel_clip.f32 hold every grey level but a few.
TEST(Patchify, NormalisesAsEitherBackendDoes) {
  const std::string directory = test::source_path("tests/golden/vision_images/");
  PatchOptions clip;
  clip.patch_size = 14;
  clip.image_mean = {0.48145466, 0.4578275, 0.40821073};
  clip.image_std = {0.26862954, 0.26130258, 0.27577711};
  const std::pair<std::string, PatchOptions> cases[] = {
      {"pixel_qwen3", {}}, {"pixel_clip", clip}, {"resized", resizing()}};
  for (const auto& [name, constants] : cases) {
    PatchOptions options = constants;
    options.backend = ImageBackend::kPil;
    const Patches patches = patchify(load_image(directory + name + ".png"), options, name);
    const std::string expected = read_file(directory + name + ".pil.f32");
    ASSERT_EQ(patches.pixel_values.size() * sizeof(float), expected.size());
    EXPECT_EQ(std::memcmp(patches.pixel_values.data(), expected.data(), expected.size()), 0)
        << name;
  }
}

}  // namespace rematch
