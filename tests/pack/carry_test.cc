#include "learn/pack/carry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pack/segments.h"
#include "support/capture.h"

namespace rematch {

using test::ids_of;
using test::segments_of;
using testing::ElementsAre;
using testing::HasSubstr;

// spec: pack-15 select-04
TEST(CarryBuffer, KeepsTheOrderOfTheRemainingSegments) {
  CarryBuffer carry({.packing_length = 10, .packing_buffer = 8});
  carry.insert(segments_of(0, {4, 9, 3, 8, 3}));
  const PackedRow row = carry.take_row(PackingSelector::kFifo);
  EXPECT_THAT(ids_of(row.segments), ElementsAre(0, 2, 4));
  EXPECT_THAT(ids_of(carry.waiting()), ElementsAre(1, 3));
  carry.insert(segments_of(5, {1}));
  EXPECT_THAT(ids_of(carry.take_row(PackingSelector::kFifo).segments), ElementsAre(1, 5));
  EXPECT_THAT(ids_of(carry.take_row(PackingSelector::kFifo).segments), ElementsAre(3));
  EXPECT_TRUE(carry.empty());
}

// spec: pack-15 select-06
TEST(CarryBuffer, ReturnsTheSegmentsNotCopies) {
  CarryBuffer carry({.packing_length = 10, .packing_buffer = 8});
  const auto segments = segments_of(0, {4, 5});
  carry.insert(segments);
  const PackedRow row = carry.take_row(PackingSelector::kFifo);
  EXPECT_EQ(row.segments[0].get(), segments[0].get());
  EXPECT_EQ(row.segments[1].get(), segments[1].get());
}

// spec: pack-10 pack-16
TEST(CarryBuffer, IsFullAtItsLimitAndRefusesOneMoreWithoutChanging) {
  CarryBuffer carry({.packing_length = 10, .packing_buffer = 4});
  carry.insert(segments_of(0, {9, 9, 9}));
  EXPECT_NO_THROW(carry.insert(segments_of(3, {9})));
  const UserError error = test::catch_user_error([&] { carry.insert(segments_of(4, {1})); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_THAT(error.problems()[0].what,
              HasSubstr("4 segments waiting and 1 new: 5 exceed packing_buffer 4"));
  for (const char* way : {"per_device_train_batch_size", "training.packing_buffer",
                          "post_rollout_pack_scope: window"}) {
    EXPECT_THAT(error.problems()[0].fix, HasSubstr(way));
  }
  EXPECT_THAT(ids_of(carry.waiting()), ElementsAre(0, 1, 2, 3));
}

// spec: select-13 select-21
TEST(CarryBuffer, ReportsAnOversizeSegmentBeforeABufferOverflow) {
  CarryBuffer carry({.packing_length = 10, .packing_buffer = 2});
  carry.insert(segments_of(0, {10}));
  const UserError error = test::catch_user_error([&] { carry.insert(segments_of(7, {3, 3, 11})); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_THAT(error.problems()[0].where, HasSubstr("sample 9"));
  EXPECT_THAT(error.problems()[0].what, HasSubstr("encoded_len 11, packing length 10"));
  for (const char* way : {"global_max_length", "max_new_tokens", "training.packing: false"})
    EXPECT_THAT(error.problems()[0].fix, HasSubstr(way));
  EXPECT_THAT(ids_of(carry.waiting()), ElementsAre(0)) << "all or none";
}

TEST(CarryBuffer, HasNoLimitWhenNoneIsGiven) {
  CarryBuffer carry({.packing_length = 10});
  EXPECT_NO_THROW(carry.insert(segments_of(0, std::vector<int>(2000, 10))));
  EXPECT_EQ(carry.waiting().size(), 2000u);
}

}  // namespace rematch
