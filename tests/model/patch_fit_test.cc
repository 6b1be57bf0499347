#include "model/patch_fit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

TEST(CheckPatchesFit, AcceptsMatchingSettings) {
  EXPECT_NO_THROW(check_patches_fit({.patch_size = 14, .temporal_patch_size = 2, .merge_size = 2},
                                    {.patch_size = 14}, "model"));
}

TEST(CheckPatchesFit, NamesEveryValueThatDiffers) {
  const VisionDescription tower{
      .in_channels = 4, .patch_size = 14, .temporal_patch_size = 1, .spatial_merge_size = 3};
  const UserError error = test::catch_user_error([&] { check_patches_fit({}, tower, "DIR"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  ASSERT_EQ(error.problems().size(), 4u);
  EXPECT_EQ(error.problems()[0].where, "DIR");
  EXPECT_EQ(error.problems()[0].what,
            "patch_size is 16, but patch_size of vision_config in config.json is 14");
  EXPECT_EQ(
      error.problems()[1].what,
      "temporal_patch_size is 2, but temporal_patch_size of vision_config in config.json is 1");
  EXPECT_EQ(error.problems()[2].what,
            "merge_size is 2, but spatial_merge_size of vision_config in config.json is 3");
  EXPECT_EQ(error.problems()[3].what,
            "channels of a pixel is 3, but in_channels of vision_config in config.json is 4");
}

}  // namespace rematch
