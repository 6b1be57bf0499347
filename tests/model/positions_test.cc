#include "model/positions.h"

#include <gtest/gtest.h>

#include "support/capture.h"

namespace rematch {
namespace {

using Row = std::vector<int64_t>;
constexpr int64_t kPad = 7;
const PositionOptions kOptions{.image_token_id = kPad, .merge_size = 2};

TEST(PositionIds, TextCountsUpOnAllThreeAxes) {
  const Positions positions = position_ids({1, 2, 3}, {}, kOptions);
  for (const Row& row : positions.axes) EXPECT_EQ(row, (Row{0, 1, 2}));
  EXPECT_EQ(positions.next, 3);
}

TEST(PositionIds, AnImageSpreadsOverRowsAndColumnsAndAdvancesByItsLongerSide) {
  // 4×6 patches merge to 2×3 tokens.
  const Positions positions =
      position_ids({1, kPad, kPad, kPad, kPad, kPad, kPad, 2}, {{1, 4, 6}}, kOptions);
  EXPECT_EQ(positions.axes[0], (Row{0, 1, 1, 1, 1, 1, 1, 4}));
  EXPECT_EQ(positions.axes[1], (Row{0, 1, 1, 1, 2, 2, 2, 4}));
  EXPECT_EQ(positions.axes[2], (Row{0, 1, 2, 3, 1, 2, 3, 4}));
  EXPECT_EQ(positions.next, 5);
}

TEST(PositionIds, AdjacentImagesFollowEachOther) {
  const Positions positions = position_ids({kPad, kPad, kPad}, {{1, 2, 2}, {1, 4, 2}}, kOptions);
  EXPECT_EQ(positions.axes[1], (Row{0, 1, 2}));
  EXPECT_EQ(positions.axes[2], (Row{0, 1, 1}));
  EXPECT_EQ(positions.next, 3);
}

TEST(PositionIds, FramesCountOnTheFirstAxis) {
  const Positions positions = position_ids({kPad, kPad, kPad, 1}, {{3, 2, 2}}, kOptions);
  EXPECT_EQ(positions.axes[0], (Row{0, 1, 2, 1}));
  EXPECT_EQ(positions.axes[1], (Row{0, 0, 0, 1}));
  EXPECT_EQ(positions.next, 3);
}

TEST(PositionIds, RefusesPadsThatDoNotFitTheImages) {
  const auto refusal = [](const Row& ids, const std::vector<GridThw>& grids) {
    const UserError error =
        test::catch_user_error([&] { position_ids(ids, grids, kOptions, "sample 3"); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(error.problems()[0].where, "sample 3");
    return error.problems()[0].what;
  };
  EXPECT_EQ(refusal({1, kPad}, {}), "a pad at token 1 after the last of 0 images");
  EXPECT_EQ(refusal({kPad, 1}, {{1, 2, 4}}), "image 0 needs 2 pads, found 1");
  EXPECT_EQ(refusal({kPad}, {{1, 2, 4}}), "image 0 needs 2 pads, found 1");
  EXPECT_EQ(refusal({1}, {{1, 2, 2}}), "1 images, but pads for 0");
  EXPECT_EQ(refusal({kPad, kPad}, {{1, 2, 2}}), "a pad at token 1 after the last of 1 images");
}

}  // namespace
}  // namespace rematch
