// Photos that cameras store rotated, and whose annotations are of the picture as viewers turn it.
#include "model/vision/upright.h"
#include "import/import_dir.h"

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
  WrittenSet convert(int width, int height, int orientation = 6) {
    write("photos/a.jpg", phone_photo(orientation));
    const ForeignImage image{.name = path("photos/a.jpg"),
                             .width_px = width,
                             .height_px = height,
                             .objects = {{.desc = "cat", .x0 = 20, .y0 = 10, .x1 = 120, .y1 = 60}}};
    return convert_set({.splits = {{"train", {image}}}});
  }
};

}  // namespace

TEST_F(UprightDir, TheRecordNamesThePhotoAndIsOfTheTurnedPicture) {
  const WrittenSet result = convert(200, 100);
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

TEST_F(UprightDir, AnAnnotationOfTheStoredPixelsIsNotTurned) {
  const Problem problem = test::problem_of([&] { convert(100, 200); });
  EXPECT_NE(problem.fix.find("exiftool"), std::string::npos) << problem.fix;
}

}  // namespace rematch
