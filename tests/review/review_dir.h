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
  static std::string record(const std::string& objects, const std::string& image = "a.png",
                            int width = 200) {
    return fmt::format(
        "{{\"images\": [\"{}\"], \"width\": {}, \"height\": 100, \"objects\": [{}]}}\n", image,
        width, objects);
  }
  static std::string box(const std::string& sides, const std::string& key = "bbox_2d") {
    return fmt::format("{{\"desc\": \"cat\", \"{}\": [{}]}}", key, sides);
  }
  // A record of b.png, 640 x 480.
  std::string large(const std::string& objects) {
    directory_.write("b.png", encode_png(Canvas(640, 480, kWhite).image()));
    return fmt::format(
        "{{\"images\": [\"b.png\"], \"width\": 640, \"height\": 480, \"objects\": [{}]}}\n",
        objects);
  }
  std::string write(const std::string& lines) { return directory_.write("data.jsonl", lines); }
  Repairs repair(const std::string& lines, const RepairOptions& options = {}) {
    return write_repaired(write(lines), directory_.file("fixed.jsonl"), options).repairs;
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
};

}  // namespace rematch::test
