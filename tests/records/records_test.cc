#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "learn/data/dataset.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/records/boxes.h"

namespace rematch {
namespace {

constexpr const char* kPolygon =
    R"({"images": ["a.png"], "width": 200, "height": 100, "prompt": "Find cats", )"
    R"("objects": [{"desc": "cat", "poly": [[30, 10], [20, 50], [90, 40]]}, )"
    R"({"desc": "dog", "bbox_2d": [1, 2, 3, 4]}], "metadata": {"k": 1}})";
constexpr const char* kBox =
    R"({"width": 200, "height":100, "images": ["a.png"],  "objects": [{"bbox_2d": [5, 6, 7, 8], )"
    R"("desc": "cat"}]})";

}  // namespace

TEST(Boxes, PolygonsBecomeTheirBoundingBoxesAndAllElseStays) {
  const test::TempDir directory;
  const std::string path =
      directory.write("data/in.jsonl", std::string(kPolygon) + "\n\n" + kBox + "\r\n");
  const BoxesWritten written = write_boxes(path, directory.file("data/out.jsonl"));
  EXPECT_EQ(written.num_records, 2);
  EXPECT_EQ(written.num_polygons, 1);
  EXPECT_EQ(written.num_flat, 0);
  EXPECT_EQ(read_file(directory.file("data/out.jsonl")),
            R"({"images": ["a.png"], "width": 200, "height": 100, "prompt": "Find cats", )"
            R"("objects": [{"desc": "cat", "bbox_2d": [20, 10, 90, 50]}, )"
            R"({"desc": "dog", "bbox_2d": [1, 2, 3, 4]}], "metadata": {"k": 1}})"
            "\n" +
                std::string(kBox) + "\n");
}

TEST(Boxes, ImagesKeepTheirPlaceInAnotherDirectory) {
  const test::TempDir directory;
  const std::string path = directory.write("data/in.jsonl", std::string(kPolygon) + "\n" + kBox);
  directory.write("data/a.png", "x");
  const std::string out = directory.file("new/deep/out.jsonl");
  write_boxes(path, out);
  const Dataset dataset = Dataset::load(out, {.check_image_files = true});
  for (const Sample& sample : dataset.samples())
    EXPECT_TRUE(std::filesystem::equivalent(sample.image_paths[0], directory.file("data/a.png")));
  // A link to another directory is not that directory.
  std::filesystem::create_directory_symlink(directory.file("new/deep"), directory.file("link"));
  write_boxes(path, directory.file("link/linked.jsonl"));
  EXPECT_EQ(Dataset::load(directory.file("link/linked.jsonl"), {}).size(), 2);
}

TEST(Boxes, NothingThatIsReadIsReplaced) {
  const test::TempDir directory;
  const std::string path = directory.write("data/in.jsonl", std::string(kPolygon) + "\n");
  const std::string image = directory.write("data/a.png", "x");
  for (const std::string& out : {path, directory.file("data/./in.jsonl"), image}) {
    EXPECT_EQ(test::catch_user_error([&] { write_boxes(path, out); }).kind(), ErrorKind::kConfig);
  }
  EXPECT_EQ(read_file(path), std::string(kPolygon) + "\n");
  EXPECT_EQ(read_file(image), "x");
}

TEST(Boxes, BadRecordsAreErrorsAndNothingIsWritten) {
  const test::TempDir directory;
  const std::string path = directory.write("in.jsonl", std::string(kPolygon) + "\n{\"images\": 1}");
  const UserError error =
      test::catch_user_error([&] { write_boxes(path, directory.file("out.jsonl")); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("in.jsonl:2"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(directory.file("out.jsonl")));
}

}  // namespace rematch
