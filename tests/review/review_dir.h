#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "learn/data/dataset.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"
#include "tools/review/review.h"

namespace rematch::test {

/// A directory with records of images, and their repaired copy.
class ReviewDir : public testing::Test {
 protected:
  ReviewDir() { directory_.write("a.png", encode_png(Canvas(200, 100, kWhite).image())); }
  // A record of another image unless one is named.
  std::string record(const std::string& objects, std::string image = "", int width = 200) {
    if (image.empty()) image = add_image(200, 100);
    return fmt::format(
        "{{\"images\": [\"{}\"], \"width\": {}, \"height\": 100, \"objects\": [{}]}}\n", image,
        width, objects);
  }
  static std::string box(const std::string& sides, const std::string& key = "bbox_2d") {
    return fmt::format("{{\"desc\": \"cat\", \"{}\": [{}]}}", key, sides);
  }
  // A record of an image of 640 x 480.
  std::string large(const std::string& objects) {
    return fmt::format(
        "{{\"images\": [\"{}\"], \"width\": 640, \"height\": 480, \"objects\": [{}]}}\n",
        add_image(640, 480), objects);
  }
  std::string write(const std::string& lines) { return directory_.write("data.jsonl", lines); }
  // Changes and omissions of the repaired copy.
  Changes repair(const std::string& lines, const RepairOptions& options = {}) {
    RepairedRecords repaired =
        write_repaired(write(lines), directory_.file("fixed.jsonl"), options);
    repaired.changes.merge(repaired.losses);
    return repaired.changes;
  }
  // The boxes of the repaired copy, line by line.
  std::string fixed_boxes() const {
    std::string boxes;
    const Dataset fixed = Dataset::load(directory_.file("fixed.jsonl"), {});
    for (const Sample& sample : fixed.samples()) {
      for (const SceneObject& object : sample.objects)
        boxes += fmt::format("[{}]", fmt::join(object.geometry.bins, ", "));
      boxes += "\n";
    }
    return boxes;
  }

  TempDir directory_;

 private:
  std::string add_image(int width, int height) {
    const std::string name = fmt::format("{}_{}.png", width, num_images_++);
    directory_.write(name, encode_png(Canvas(width, height, kWhite).image()));
    return name;
  }
  int num_images_ = 0;
};

}  // namespace rematch::test
