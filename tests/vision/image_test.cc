#include "model/vision/image.h"

#include <gtest/gtest.h>
// gtest first
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "model/vision/image_formats.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vision/image_golden.h"

namespace rematch {
namespace {

std::string golden(const std::string& name) {
  return test::source_path("tests/golden/vision_images/" + name);
}

// Decodes foreign bytes: either a picture of the right size or a data error; anything else (a
// crash, another exception) fails the test.
void decode_anything(const std::string& bytes) {
  try {
    const Image image = decode_image(bytes, "bytes");
    EXPECT_EQ(image.rgb.size(), static_cast<size_t>(image.width_px) * image.height_px * 3);
  } catch (const UserError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
}

}  // namespace

TEST(LoadImage, EqualsPillowOnEveryKindAndRefusesTheRest) {
  test::expect_images_as_pillow(test::source_path("tests/golden/vision_images"));
}

TEST(LoadImage, AMissingFileIsAnEnvironmentError) {
  const UserError error = test::catch_user_error([] { load_image("/nowhere/picture.png"); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].where, "/nowhere/picture.png");
}

TEST(LoadImage, GoesByContentNotByName) {
  const test::TempDir directory;
  EXPECT_EQ(load_image(directory.write("really_a.png", read_file(golden("jpeg_444.jpg")))).width_px,
            45);
}

TEST(LoadImage, ACutOffFileOfAnyLengthIsCorrupt) {
  for (const char* name : {"png_rgb.png", "jpeg_420.jpg", "jpeg_progressive.jpg", "webp_lossy.webp",
                           "webp_lossless_alpha.webp"}) {
    const std::string bytes = read_file(golden(name));
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 16) {
      EXPECT_THROW(decode_image(bytes.substr(0, size), "cut"), UserError)
          << name << " cut to " << size << " bytes";
    }
  }
}

TEST(LoadImage, TheSizeOfASquareDoesNotShowThatItIsTurned) {
  const ImageFacts facts = read_image_facts(golden("rotated.jpg"));
  EXPECT_EQ(facts.orientation, 6);
  EXPECT_TRUE(facts.hides_turn());
  EXPECT_FALSE(facts.is_unturned(facts.size));
}

TEST(LoadImage, ToleratesBytesBeforeAMarkerAsPillowDoes) {
  std::string bytes = read_file(golden("jpeg_444.jpg"));
  bytes.insert(bytes.size() - 2, 5, '\x07');  // extraneous bytes before the end marker
  EXPECT_EQ(decode_image(bytes, "x").rgb, load_image(golden("jpeg_444.jpg")).rgb);
}

RC_GTEST_PROP(LoadImage, FlippedBytesNeverCrash, ()) {
  static const std::vector<std::string> kFiles = {
      "png_palette4_alpha.png", "png_rgb_interlaced.png", "jpeg_420.jpg",
      "jpeg_progressive.jpg",   "webp_lossy_alpha.webp",  "webp_lossless.webp"};
  std::string bytes = read_file(golden(*rc::gen::elementOf(kFiles)));
  const int num_flips = *rc::gen::inRange(1, 6);
  for (int i = 0; i < num_flips; ++i) {
    const auto position = *rc::gen::inRange<size_t>(0, bytes.size());
    bytes[position] = static_cast<char>(*rc::gen::inRange(0, 256));
  }
  // Sizes are flipped too; keep the test small.
  try {
    const vision::ImageHeader header = vision::read_image_header(bytes, "bytes");
    if (int64_t{header.size.width_px} * header.size.height_px > 1 << 22) return;
  } catch (const UserError&) {
    return;
  }
  decode_anything(bytes);
}

TEST(CompositeOnWhite, KeepsOpaqueAndHidesTransparent) {
  for (int value = 0; value < 256; ++value) {
    EXPECT_EQ(vision::composite_on_white(static_cast<uint8_t>(value), 255), value);
    EXPECT_EQ(vision::composite_on_white(static_cast<uint8_t>(value), 0), 255);
  }
}

TEST(LoadImage, NamesWhatIsNoImage) {
  for (const char* bytes : {"hello\n", "%PDF-1.7\n\xff"}) {
    const Problem problem =
        test::catch_user_error([&] { decode_image(bytes, "a"); }).problems().front();
    EXPECT_EQ(problem.error, "this is not an image") << bytes;
    EXPECT_EQ(problem.fix, "give JPEG, PNG or WebP files");
  }
}

}  // namespace rematch
