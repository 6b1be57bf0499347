#include "vision/image_golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/vision/image.h"
#include "model/vision/patches.h"
#include "support/capture.h"

namespace rematch::test {
namespace {

void expect_refused(const std::string& path, const std::string& words) {
  const UserError error = catch_user_error([&] { load_image(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kData) << path;
  EXPECT_NE(error.problems()[0].error.find(words), std::string::npos)
      << path << ": " << error.what();
  EXPECT_EQ(error.problems()[0].where, path);
  EXPECT_FALSE(error.problems()[0].fix.empty());
}

void expect_pixels(const std::string& path, const Json& row) {
  const Image image = load_image(path);
  ASSERT_EQ(image.width_px, row["width"].get<int>()) << path;
  ASSERT_EQ(image.height_px, row["height"].get<int>()) << path;
  EXPECT_EQ(read_image_size(path), (ImageSize{image.width_px, image.height_px})) << path;
  const std::string expected = read_file(path + ".rgb");
  ASSERT_EQ(image.rgb.size(), expected.size()) << path;
  EXPECT_EQ(std::memcmp(image.rgb.data(), expected.data(), expected.size()), 0) << path;
}

void expect_pixel_values(const std::string& directory, const std::string& name,
                         const PatchOptions& options) {
  const Patches patches = patchify(load_image(directory + "/" + name + ".png"), options, name);
  const std::string expected = read_file(directory + "/" + name + ".f32");
  ASSERT_EQ(patches.pixel_values.size() * sizeof(float), expected.size()) << name;
  EXPECT_EQ(std::memcmp(patches.pixel_values.data(), expected.data(), expected.size()), 0) << name;
}

}  // namespace

void expect_images_as_pillow(const std::string& directory) {
  int num_rows = 0;
  for (const std::string& line : split(read_file(directory + "/manifest.jsonl"), '\n')) {
    if (line.empty()) continue;
    ++num_rows;
    const Json row = parse_json(line, "manifest.jsonl");
    const std::string path = directory + "/" + row["file"].get<std::string>();
    if (row.contains("refused")) {
      expect_refused(path, row["refused"].get<std::string>());
    } else {
      expect_pixels(path, row);
    }
  }
  EXPECT_GE(num_rows, 50);
}

void expect_pixel_values_as_transformers(const std::string& directory) {
  expect_pixel_values(directory, "pixel_qwen3", PatchOptions{});
  PatchOptions clip;
  clip.patch_size = 14;
  clip.image_mean = {0.48145466, 0.4578275, 0.40821073};
  clip.image_std = {0.26862954, 0.26130258, 0.27577711};
  expect_pixel_values(directory, "pixel_clip", clip);
}

}  // namespace rematch::test
