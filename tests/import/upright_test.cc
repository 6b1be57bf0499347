// Photos that cameras store rotated, and whose annotations are of the picture as viewers turn it.
#include <filesystem>

#include "base/file.h"
#include "import/import_dir.h"
#include "model/vision/upright.h"

namespace rematch {
namespace {

// A JPEG of 100 x 200 stored pixels, its upper half red, that viewers turn.
std::string phone_photo(int orientation) {
  Canvas canvas(100, 200, kWhite);
  Image image = canvas.image();
  for (size_t i = 0; i < image.rgb.size() / 2; ++i) image.rgb[i] = i % 3 == 0 ? 255 : 0;
  std::string jpeg = encode_jpeg(image, 95);
  const std::string tiff = std::string("MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
                           static_cast<char>(orientation) + std::string(6, '\0');
  const std::string exif = std::string("Exif\0\0", 6) + tiff;
  return jpeg.insert(2, std::string("\xFF\xE1\0", 3) + static_cast<char>(exif.size() + 2) + exif);
}

class UprightDir : public test::ImportDir {
 protected:
  WrittenSet convert(int width, int height, bool upright, int orientation = 6) {
    write("photos/a.jpg", phone_photo(orientation));
    const ForeignImage image{.name = path("photos/a.jpg"),
                             .width_px = width,
                             .height_px = height,
                             .objects = {{.desc = "cat", .x0 = 20, .y0 = 10, .x1 = 120, .y1 = 60}}};
    return convert_set({.splits = {{"train", {image}}}}, {.upright = upright});
  }
};

}  // namespace

TEST_F(UprightDir, WithoutTheOptionTheRecordNamesThePhotoAndIsOfTheTurnedPicture) {
  const WrittenSet result = convert(200, 100, false);
  const Sample sample = written("train").samples()[0];
  EXPECT_EQ(sample.width_px, 200);
  EXPECT_EQ(sample.height_px, 100);
  EXPECT_EQ(sample.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_TRUE(sample.image_paths[0].ends_with("photos/a.jpg")) << sample.image_paths[0];
  EXPECT_EQ(load_image(sample.image_paths[0]).width_px, 200);
  EXPECT_EQ(test::noted(result,
                        "photos stored turned (EXIF), annotated and trained on as viewers show "
                        "them"),
            1);
}

TEST_F(UprightDir, ACopyIsTurnedAndTheRecordNamesIt) {
  const std::string before = phone_photo(6);
  const WrittenSet result = convert(200, 100, true);
  const Sample sample = written("train").samples()[0];
  EXPECT_EQ(sample.width_px, 200);
  EXPECT_EQ(sample.height_px, 100);
  EXPECT_EQ(sample.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(sample.image_paths[0], out() + "/upright/train/a.jpg");
  const Image turned = load_image(sample.image_paths[0]);
  EXPECT_EQ(turned.width_px, 200);
  EXPECT_GT(turned.rgb[1], 200);  // turned clockwise: red is at the right
  EXPECT_LT(turned.rgb[static_cast<size_t>(199) * 3 + 1], 50);
  EXPECT_EQ(read_file(path("photos/a.jpg")), before);
  EXPECT_EQ(test::noted(result, "upright copies of photos stored rotated (EXIF)"), 1);
  convert(0, 0, true);  // shares, and sizes that are not annotated, are of the turned picture too
  EXPECT_EQ(written("train").samples()[0].width_px, 200);
}

TEST_F(UprightDir, AnAnnotationOfTheStoredPixelsIsNotTurned) {
  const Problem problem = test::problem_of([&] { convert(100, 200, true); });
  EXPECT_NE(problem.what.find("exiftool"), std::string::npos) << problem.what;
}

TEST_F(UprightDir, ACopyNeverReplacesAnImageThatIsRead) {
  write("out/upright/train/a.jpg", phone_photo(6));
  const ForeignImage image{.name = out() + "/upright/train/a.jpg"};
  const UserError error = test::catch_user_error(
      [&] { convert_set({.splits = {{"train", {image}}}}, {.upright = true}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(read_file(image.name), phone_photo(6));
}

TEST_F(UprightDir, CopiesOfEqualNamesGetTheirOwn) {
  const ForeignImage one{.name = write("one/a.jpg", phone_photo(8))},
      two{.name = write("two/a.jpg", phone_photo(6))};
  convert_set({.splits = {{"train", {one, two}}}}, {.upright = true});
  EXPECT_EQ(written("train").samples()[1].image_paths[0], out() + "/upright/train/a_2.jpg");
}

}  // namespace rematch
