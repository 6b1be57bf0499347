#include "pack/rows.h"

#include <gtest/gtest.h>

namespace rematch {

std::shared_ptr<const Segment> segment_of(int64_t id, size_t len) {
  Segment segment;
  segment.sample_id = id;
  segment.token_ids.assign(len, 1);
  return std::make_shared<const Segment>(std::move(segment));
}

TEST(RowsOfMicroBatches, KeepsSampleOrderAndOneRowPerMicroBatch) {
  const auto rows = rows_of_micro_batches({{segment_of(3, 2), segment_of(1, 5)}, {}, {segment_of(2, 1)}});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].segments[0]->sample_id, 3);
  EXPECT_EQ(rows[0].segments[1]->sample_id, 1);
  EXPECT_EQ(rows[0].total_len(), 7);
  EXPECT_EQ(rows[1].segments[0]->sample_id, 2);
}

}  // namespace rematch
