#include "engine/ranks/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/ranks.h"

namespace rematch {
namespace {

struct Part {
  std::string text;

  template <typename Wire>
  friend void fields(Wire& wire, Part& part) {
    wire(part.text);
  }
};

}  // namespace

TEST(Gather, GivesEveryRankTheValuesOfAll) {
  test::run_ranks(3, [](Group& group) {
    const Part mine{.text = std::string(static_cast<size_t>(group.rank()), 'x')};
    const std::vector<Part> all = gather(group, mine);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[2].text, "xx");
    EXPECT_EQ(from_first_rank(group, group.rank() + 5), 5);
  });
  EXPECT_THAT(gather(alone(), 7), ::testing::ElementsAre(7));
}

TEST(Gather, WindowOrderIsRoundRobinOverTheRanks) {
  const std::vector<std::vector<int>> by_rank{{0, 3, 6}, {1, 4}, {2}};
  EXPECT_THAT(in_window_order(by_rank), ::testing::ElementsAre(0, 1, 2, 3, 4, 6));
}

}  // namespace rematch
