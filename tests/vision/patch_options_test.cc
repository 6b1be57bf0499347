#include <gtest/gtest.h>

#include "base/error.h"
#include "model/vision/patches.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

PatchOptions read(const std::string& preprocessor, const std::string& processor = "",
                  const ImageSettings& images = {}) {
  const test::TempDir directory;
  if (!preprocessor.empty()) directory.write("preprocessor_config.json", preprocessor);
  if (!processor.empty()) directory.write("processor_config.json", processor);
  return PatchOptions::from_model_dir(directory.path(), images);
}

void expect_setting_refused(const std::string& preprocessor, const std::string& setting) {
  const UserError error = test::catch_user_error([&] { read(preprocessor); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find(setting), std::string::npos) << error.what();
}

}  // namespace

TEST(PatchOptions, ReadsAQwen3File) {
  const PatchOptions options =
      read(R"({"size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16,
    "temporal_patch_size": 2, "merge_size": 2, "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5], "processor_class": "Qwen3VLProcessor"})");
  EXPECT_EQ(options, PatchOptions{.do_resize = true});
  EXPECT_EQ(options.side_multiple_px(), 32);
}

TEST(PatchOptions, MissingFieldsTakeTheDefaultsOfTheClass) {
  const PatchOptions options = read(R"({"image_std": null})");
  EXPECT_EQ(options.patch_size, 14);
  EXPECT_EQ(options.image_mean[1], 0.4578275);
  EXPECT_EQ(options.image_std[2], 0.27577711);
  EXPECT_EQ(options.min_pixels, 3136);
  EXPECT_EQ(options.max_pixels, 1003520);
}

TEST(PatchOptions, ProcessorConfigWins) {
  EXPECT_EQ(read(R"({"patch_size": 14})",
                 R"({"image_processor": {"patch_size": 8}, "processor_class": "x"})")
                .patch_size,
            8);
  EXPECT_EQ(read(R"({"patch_size": 12})", R"({"processor_class": "x"})").patch_size, 12);
}

TEST(PatchOptions, TopLevelLimitsOverrideSize) {
  const PatchOptions options = read(
      R"({"size": {"shortest_edge": 1, "longest_edge": 2}, "min_pixels": 3, "max_pixels": 4})");
  EXPECT_EQ(options.min_pixels, 3);
  EXPECT_EQ(options.max_pixels, 4);
  EXPECT_EQ(read(R"({"size": {"min_pixels": 5, "max_pixels": 6}})").min_pixels, 5);
}

TEST(PatchOptions, TheConfigurationOverridesTheDirectory) {
  const char* const file =
      R"({"size": {"shortest_edge": 1, "longest_edge": 2}, "min_pixels": 3, "max_pixels": 4})";
  const PatchOptions options = read(file, "",
                                    {.image_resize = ImageResize::kRefuse,
                                     .image_backend = ImageBackend::kPil,
                                     .min_pixels = 10,
                                     .max_pixels = 20});
  EXPECT_EQ(options.min_pixels, 10);
  EXPECT_EQ(options.max_pixels, 20);
  EXPECT_EQ(options.on_resize, ImageResize::kRefuse);
  EXPECT_EQ(options.backend, ImageBackend::kPil);
  EXPECT_EQ(read(file, "", {.max_pixels = 5}).min_pixels, 3);
}

TEST(PatchOptions, LimitsThatExcludeEachOtherAreAConfigurationError) {
  const UserError error = test::catch_user_error(
      [] { read(R"({"min_pixels": 30, "max_pixels": 40})", "", {.max_pixels = 20}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].what.find("30 and 20"), std::string::npos);
}

TEST(PatchOptions, DoResizeIsOnUnlessTheFileSaysNo) {
  EXPECT_TRUE(read("{}").do_resize);
  EXPECT_TRUE(read(R"({"do_resize": null, "resample": 3})").do_resize);
  EXPECT_FALSE(read(R"({"do_resize": false, "resample": 2})").do_resize);
}

TEST(PatchOptions, AMissingFileSaysWhichFileToCopy) {
  const UserError error = test::catch_user_error([] { read(""); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].fix.find("preprocessor_config.json"), std::string::npos);
}

TEST(PatchOptions, RefusesToEnlargeEveryImageBeyondWhatModelsTake) {
  EXPECT_EQ(read(R"({"min_pixels": 16777216, "max_pixels": 200000000})").min_pixels, 16777216);
  expect_setting_refused(R"({"min_pixels": 200000000, "max_pixels": 200000000})", "min_pixels");
  expect_setting_refused(R"({"size": {"shortest_edge": 16777217, "longest_edge": 200000000}})",
                         "shortest_edge");
}

TEST(PatchOptions, RefusesNumbersBeyondAnyProcessor) {
  // An image is enlarged to one token: with these sizes to a square of up to 2^40 pixels.
  EXPECT_EQ(read(R"({"patch_size": 256, "merge_size": 8})").merge_size, 8);
  expect_setting_refused(R"({"patch_size": 257})", "patch_size");
  expect_setting_refused(R"({"merge_size": 9})", "merge_size");
  expect_setting_refused(R"({"image_mean": [0.5, 1e30, 0.5]})", "image_mean");
  expect_setting_refused(R"({"image_std": [0.5, 1e-40, 0.5]})", "image_std");
  expect_setting_refused(R"({"rescale_factor": 1e-40})", "rescale_factor");
  expect_setting_refused(R"({"rescale_factor": 1e30})", "rescale_factor");
  expect_setting_refused(R"({"max_pixels": 2199023255552})", "max_pixels");
}

TEST(PatchOptions, RefusesDamagedValues) {
  expect_setting_refused(R"({"patch_size": 0})", "patch_size");
  expect_setting_refused(R"({"patch_size": "16"})", "patch_size");
  expect_setting_refused(R"({"merge_size": 2.5})", "merge_size");
  expect_setting_refused(R"({"temporal_patch_size": 1024})", "temporal_patch_size");
  expect_setting_refused(R"({"image_mean": [0.5, 0.5]})", "image_mean");
  expect_setting_refused(R"({"image_std": [0.5, 0, 0.5]})", "image_std");
  expect_setting_refused(R"({"rescale_factor": -1})", "rescale_factor");
  expect_setting_refused(R"({"do_normalize": false})", "do_normalize");
  expect_setting_refused(R"({"do_rescale": false})", "do_rescale");
  expect_setting_refused(R"({"do_resize": 1})", "do_resize");
  expect_setting_refused(R"({"resample": 2})", "resample");
  expect_setting_refused(R"({"size": {"height": 224}})", "size");
  expect_setting_refused(R"({"size": 224})", "size");
  expect_setting_refused(R"([1])", "the whole file");
  expect_setting_refused(R"({)", "not valid JSON");
}

}  // namespace rematch
