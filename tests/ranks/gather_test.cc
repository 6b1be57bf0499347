#include "ranks/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/metrics.h"
#include "support/ranks.h"

namespace rematch {
namespace {

enum class Color { kRed, kGreen };

struct Part {
  std::string text;
  Color color = Color::kRed;
  std::vector<std::pair<int, double>> values;
  std::map<std::string, std::array<int64_t, 2>> by_name;

  bool operator==(const Part&) const = default;
  template <typename Wire>
  friend void fields(Wire& wire, Part& part) {
    wire(part.text, part.color, part.values, part.by_name);
  }
};

}  // namespace

TEST(Wire, ValuesRoundTrip) {
  const Part part{std::string("a\0b", 3), Color::kGreen, {{1, 0.1}, {2, -0.0}}, {{"x", {3, 4}}}};
  EXPECT_EQ(from_wire<Part>(to_wire(part)), part);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(from_wire<double>(to_wire(nan))));
  MetricsBag bag;
  bag.add("loss", 0.1);
  bag.add("loss", std::numeric_limits<double>::infinity());
  EXPECT_EQ(from_wire<MetricsBag>(to_wire(bag)).all(), bag.all());
}

TEST(Wire, ATruncatedMessageIsABug) {
  const std::string bytes = to_wire(std::string("text"));
  EXPECT_ANY_THROW(from_wire<std::string>(bytes.substr(0, bytes.size() - 1)));
  EXPECT_ANY_THROW(from_wire<std::string>(bytes + "x"));
}

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
