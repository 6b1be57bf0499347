#include "vision/smart_resize.h"

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
    const PixelSize size = smart_resize(
        {.height_px = static_cast<int>(v[0]), .width_px = static_cast<int>(v[1])},
        {.side_multiple_px = static_cast<int>(v[2]), .min_pixels = v[3], .max_pixels = v[4]},
        "golden");
    EXPECT_EQ(size, (PixelSize{static_cast<int>(v[5]), static_cast<int>(v[6])})) << item.dump();
  }
}

TEST(SmartResize, RoundsHalvesToTheEvenMultiple) {
  const ResizeLimits any{.side_multiple_px = 32, .min_pixels = 1, .max_pixels = 1 << 30};
  EXPECT_EQ(smart_resize({48, 80}, any, "x"), (PixelSize{64, 64}));
  EXPECT_EQ(smart_resize({112, 144}, any, "x"), (PixelSize{128, 128}));
}

TEST(SmartResize, RefusesAnAspectRatioBeyond200) {
  const UserError error = test::catch_user_error([] { smart_resize({10, 2001}, {}, "long.png"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, "long.png");
  EXPECT_NO_THROW(smart_resize({10, 2000}, {}, "long.png"));
}

TEST(NearestLegalSize, IsThePositiveMultipleNextToEachSide) {
  EXPECT_EQ(nearest_legal_size({1, 33}, 32), (PixelSize{32, 32}));
  EXPECT_EQ(nearest_legal_size({640, 479}, 32), (PixelSize{640, 480}));
}

}  // namespace rematch
