#include <gtest/gtest.h>

#include <filesystem>

#include "support/capture.h"
#include "support/paths.h"
#include "vision/image_golden.h"
#include "vision/resize_golden.h"
#include "vision/suite_golden.h"

namespace rematch {

namespace {

// Runs a recipe of dev/goldens into a fresh directory. @return why it cannot be run, or ""
std::string make_goldens(const std::string& arguments, const std::string& directory) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) return "no .venv; run scripts/setup";
  const std::string probe =
      " -c 'import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in "
      "(\"PIL\", \"torch\", \"transformers\")))'";
  if (test::run_command(python + probe).exit_code != 0)
    return "Pillow, torch or transformers is missing";
  const auto result =
      test::run_command("OMP_NUM_THREADS=1 " + python + " " +
                        test::source_path("dev/goldens/" + arguments) + " " + directory);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return "";
}

}  // namespace

TEST(ImageOracle, FreshImagesDecodeAndPatchifyAsPillowAndTransformersDo) {
  const test::TempDir directory;
  const std::string missing = make_goldens("vision_images.py --seed 101", directory.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  test::expect_images_as_pillow(directory.path());
  test::expect_pixel_values_as_transformers(directory.path());
}

TEST(ImageOracle, FreshImagesOfRealSizesGiveThePixelValuesOfBothProcessors) {
  const test::TempDir directory;
  const std::string missing = make_goldens("vision_resize.py --large --seed 202", directory.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  test::expect_processed_as_transformers(directory.path());
}

// With the torchvision of .venv-vllm where there is one, else with its stand-ins
// (dev/goldens/find_torchvision.py).
TEST(ImageOracle, SixtyAwkwardPicturesGiveThePixelsGridsAndTokensOfAutoProcessor) {
  const test::TempDir directory;
  const std::string missing = make_goldens("vision_suite.py", directory.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  test::expect_suite_as_auto_processor(directory.path());
}

}  // namespace rematch
