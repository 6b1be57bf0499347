#include "model/vision/smart_resize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(SmartResize, EqualsTransformers) {
  const Json cases = read_json_file(test::source_path("tests/golden/vision_smart_resize.json"));
  EXPECT_GE(cases.size(), 500u);
  for (const Json& item : cases) {
    // height, width, factor, min, max, new height, new width
    const auto v = item.get<std::vector<int64_t>>();
    const ImageSize size = smart_resize(
        {.width_px = static_cast<int>(v[1]), .height_px = static_cast<int>(v[0])},
        {.side_multiple_px = static_cast<int>(v[2]), .min_pixels = v[3], .max_pixels = v[4]},
        "golden");
    EXPECT_EQ(size, (ImageSize{static_cast<int>(v[6]), static_cast<int>(v[5])})) << item.dump();
  }
}

TEST(SmartResize, RoundsHalvesToTheEvenMultiple) {
  const ResizeLimits any{.side_multiple_px = 32, .min_pixels = 1, .max_pixels = 1 << 30};
  EXPECT_EQ(smart_resize({80, 48}, any, "x"), (ImageSize{64, 64}));
  EXPECT_EQ(smart_resize({144, 112}, any, "x"), (ImageSize{128, 128}));
}

TEST(SmartResize, RefusesAnAspectRatioBeyond200) {
  const UserError error = test::catch_user_error([] { smart_resize({2001, 10}, {}, "long.png"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "long.png");
  EXPECT_NO_THROW(smart_resize({2000, 10}, {}, "long.png"));
}

TEST(SmartResize, RefusesMorePixelsThanAnyModelTakes) {
  const ResizeLimits any{.side_multiple_px = 32, .min_pixels = 1, .max_pixels = 1 << 30};
  EXPECT_EQ(smart_resize({8192, 8192}, any, "x"), (ImageSize{8192, 8192}));
  const UserError large =
      test::catch_user_error([&] { smart_resize({8192, 8224}, any, "large.png"); });
  EXPECT_EQ(large.kind(), ErrorKind::kData);
  EXPECT_EQ(large.problems()[0].where, "large.png");
  const ResizeLimits blocks{.side_multiple_px = 1 << 14, .min_pixels = 1, .max_pixels = 64};
  EXPECT_EQ(test::catch_user_error([&] { smart_resize({64, 64}, blocks, "x"); }).kind(),
            ErrorKind::kData);
}

TEST(NearestLegalSize, IsThePositiveMultipleNextToEachSide) {
  EXPECT_EQ(nearest_legal_size({33, 1}, 32), (ImageSize{32, 32}));
  EXPECT_EQ(nearest_legal_size({479, 640}, 32), (ImageSize{480, 640}));
}

}  // namespace rematch
