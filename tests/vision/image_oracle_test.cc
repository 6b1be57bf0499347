#include <gtest/gtest.h>

#include <filesystem>

#include "support/capture.h"
#include "support/paths.h"
#include "vision/image_golden.h"

namespace rematch {

TEST(ImageOracle, FreshImagesDecodeAndPatchifyAsPillowAndTransformersDo) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no .venv; run scripts/setup";
  const std::string probe =
      " -c 'import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in (\"PIL\", \"torch\", \"transformers\")))'";
  if (test::run_command(python + probe).exit_code != 0) GTEST_SKIP() << "Pillow, torch or transformers is missing";
  const test::TempDir directory;
  const std::string script = test::source_path("tools/goldens/vision_images.py");
  const auto result = test::run_command("OMP_NUM_THREADS=1 " + python + " " + script + " " + directory.path() + " --seed 101");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  test::expect_images_as_pillow(directory.path());
  test::expect_pixel_values_as_transformers(directory.path());
}

}  // namespace rematch
