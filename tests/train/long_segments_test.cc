#include "train/long_segments.h"

#include <gtest/gtest.h>

#include "data/bad_sample.h"
#include "support/ranks.h"

namespace rematch {
namespace {

std::shared_ptr<const Segment> of_length(size_t length) {
  auto made = std::make_shared<Segment>();
  made->token_ids.resize(length);
  return made;
}

bool is_long(const Segment& segment) { return segment.encoded_len() > 4; }

}  // namespace

TEST(LongSegments, AreCountedOnceOverAllRanks) {
  test::run_ranks(3, [](Group& group) {
    WindowSegments segments{{of_length(3), of_length(5)}, {of_length(4)}};
    if (group.rank() == 2) segments = {{of_length(9)}};  // this rank keeps none
    MetricsBag metrics;
    LongSegments(is_long, group).leave_out(segments, metrics);
    EXPECT_EQ(segments[0].size(), group.rank() == 2 ? 0u : 1u);
    EXPECT_EQ(metrics.values("data/skipped_samples"),
              group.rank() == 0 ? std::vector<double>{3} : std::vector<double>{});
  });
}

TEST(LongSegments, EndTheRunOfAllRanksWhereNoneIsLeft) {
  test::run_ranks(2, [](Group& group) {
    WindowSegments segments{{of_length(5)}};
    MetricsBag metrics;
    EXPECT_THROW(LongSegments(is_long, group).leave_out(segments, metrics), BadSample);
  });
}

TEST(LongSegments, AreLeftOutInSilenceWhereThereAreNone) {
  test::run_ranks(2, [](Group& group) {
    WindowSegments segments;
    if (group.rank() == 0) segments = {{of_length(4)}};
    MetricsBag metrics;
    LongSegments(is_long, group).leave_out(segments, metrics);
    EXPECT_TRUE(metrics.all().empty());
  });
}

}  // namespace rematch
