#include "dist/group.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace rematch {

TEST(Group, OfOneLeavesEveryValueAsItIs) {
  Group& group = group_of(World{});
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.rank(), 0);
  std::array<double, 2> values{0.1, -3};
  std::array<int64_t, 1> counts{7};
  group.all_reduce(values);
  group.all_reduce(counts);
  EXPECT_EQ(values, (std::array<double, 2>{0.1, -3}));
  EXPECT_EQ(counts[0], 7);
  EXPECT_EQ(group.gather(std::string("a\0b", 3)), (std::vector<std::string>{std::string("a\0b", 3)}));
  EXPECT_EQ(group.broadcast("text"), "text");
  group.barrier();
}

TEST(Group, OfSeveralRanksIsNotBuiltYet) { EXPECT_THROW(group_of({.size = 2, .rank = 1}), InternalError); }

}  // namespace rematch
