#include <ATen/ATen.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "model/checkpoint/safetensors.h"
#include "model/vision/resample.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tool_stages.h"

namespace rematch {
namespace {

class PixelsStageTest : public testing::Test {
 protected:
  PixelsStageTest() {
    // The settings with which dev/goldens/vision_images.py made resized.f32.
    directory_.write(
        "model/preprocessor_config.json",
        R"({"patch_size": 16, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
      "size": {"shortest_edge": 1024, "longest_edge": 16777216}})");
  }

  static std::string golden(const std::string& name) {
    return test::source_path("tests/golden/vision_images/" + name);
  }

  // The answers to some input lines; exit_code_ is the stage's.
  std::vector<Json> answers_to(const std::string& lines) {
    const auto stage = make_pixels_stage(
        {.model_dir = directory_.file("model"), .output_dir = directory_.file("out")});
    std::istringstream in(lines);
    std::ostringstream out;
    exit_code_ = run_stage(*stage, 1, in, out);
    std::vector<Json> answers;
    for (const std::string& line : split(out.str(), '\n')) {
      if (!line.empty()) answers.push_back(parse_json(line, "answer"));
    }
    return answers;
  }

  static void expect_values(const std::string& file, const std::string& expected_path) {
    const auto tensors = SafetensorsFile::open(file);
    const at::Tensor values = tensors->tensor("pixel_values");
    const std::string expected = read_file(expected_path);
    ASSERT_EQ(static_cast<size_t>(values.numel()) * sizeof(float), expected.size());
    EXPECT_EQ(std::memcmp(values.const_data_ptr<float>(), expected.data(), expected.size()), 0)
        << expected_path;
    EXPECT_EQ(tensors->tensor("image_grid_thw").sizes(), (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(tensors->tensor("image_grid_thw").prod().item<int64_t>(), values.size(0));
  }

  test::TempDir directory_;
  int exit_code_ = -1;
};

}  // namespace

TEST_F(PixelsStageTest, WritesTheRowsTransformersGives) {
  const std::vector<Json> answers =
      answers_to(fmt::format(R"({{"id": "a", "image": "{}"}})", golden("pixel_qwen3.png")));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(exit_code_, 0) << answers[0].dump();
  EXPECT_EQ(answers[0]["id"], "a");
  EXPECT_EQ(answers[0]["grid"].dump(), "[1,2,2]");
  EXPECT_EQ(answers[0]["file"], directory_.file("out/a.safetensors"));
  expect_values(answers[0]["file"].get<std::string>(), golden("pixel_qwen3.f32"));
}

TEST_F(PixelsStageTest, ResizesBitForBitAsTransformers) {
  const std::vector<Json> answers =
      answers_to(fmt::format(R"({{"id": 7, "image": "{}"}})", golden("resized.png")));
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_EQ(exit_code_, 0) << answers[0].dump();
  EXPECT_EQ(answers[0]["file"], directory_.file("out/7.safetensors"));
  expect_values(answers[0]["file"].get<std::string>(), golden("resized.f32"));
}

// PyTorch's own kernel is the one that torchvision calls.
TEST_F(PixelsStageTest, ResizesToTheBitAsPyTorchAtEverySize) {
  for (int seed = 0; seed < 60; ++seed) {
    at::manual_seed(static_cast<uint64_t>(seed));
    const auto side = [](int64_t most) { return at::randint(1, most, {1}).item<int64_t>(); };
    const int64_t height = side(seed % 3 == 0 ? 400 : 70), width = side(seed % 3 == 1 ? 400 : 70);
    const int64_t new_height = side(120), new_width = side(120);
    at::Tensor pixels_HWC = at::randint(0, 256, {height, width, 3}, at::kByte);
    // overshoots at every edge
    if (seed % 4 == 0) pixels_HWC = pixels_HWC.ge(128).to(at::kByte).mul(255);
    Image image{
        .width_px = static_cast<int>(width), .height_px = static_cast<int>(height), .rgb = {}};
    image.rgb.assign(pixels_HWC.const_data_ptr<uint8_t>(),
                     pixels_HWC.const_data_ptr<uint8_t>() + pixels_HWC.numel());
    const Image resized = resize_bicubic(
        image, {.width_px = static_cast<int>(new_width), .height_px = static_cast<int>(new_height)},
        ImageBackend::kTorchvision);
    const at::Tensor expected = at::_upsample_bicubic2d_aa(
        pixels_HWC.permute({2, 0, 1}).contiguous().unsqueeze(0), {new_height, new_width}, false);
    const at::Tensor expected_HWC = expected.squeeze(0).permute({1, 2, 0}).contiguous();
    ASSERT_EQ(static_cast<int64_t>(resized.rgb.size()), expected_HWC.numel());
    EXPECT_EQ(
        std::memcmp(resized.rgb.data(), expected_HWC.const_data_ptr<uint8_t>(), resized.rgb.size()),
        0)
        << width << " x " << height << " to " << new_width << " x " << new_height;
  }
}

TEST_F(PixelsStageTest, ABadLineDoesNotStopTheRest) {
  const std::vector<Json> answers =
      answers_to(fmt::format("{{\"id\": \"x\", \"image\": \"{0}\", \"do_resize\": false}}\n"
                             "{{\"id\": \"../x\", \"image\": \"{1}\"}}\n"
                             "{{\"image\": \"{1}\", \"do_resiz\": true}}\n{{\"image\": \"{1}\"}}\n"
                             "{{\"image\": \"{1}\", \"backend\": \"pillow\"}}\n",
                             golden("resized.png"), golden("pixel_qwen3.png")));
  EXPECT_EQ(exit_code_, 3);
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0]["error"]["kind"], "data");  // 45 x 37 px, not to be resized
  EXPECT_EQ(answers[1]["error"]["kind"], "data");  // a file name outside the directory
  EXPECT_EQ(answers[2]["error"]["kind"], "config");
  EXPECT_EQ(answers[3]["file"], directory_.file("out/line-4.safetensors"));
  EXPECT_NE(answers[4]["error"]["message"].dump().find("expected torchvision or pil"),
            std::string::npos)
      << answers[4].dump();
}

TEST_F(PixelsStageTest, AnUnwritableOutputDirectoryIsAnEnvironmentError) {
  directory_.write("out", "a file");
  EXPECT_EQ(test::catch_user_error([&] { answers_to(""); }).kind(), ErrorKind::kEnvironment);
}

}  // namespace rematch
