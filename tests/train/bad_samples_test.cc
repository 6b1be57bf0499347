#include "learn/train/bad_samples.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/paths.h"
#include "support/ranks.h"

namespace rematch {
namespace {

std::shared_ptr<const Segment> of_length(size_t length) {
  auto made = std::make_shared<Segment>();
  made->token_ids.resize(length);
  return made;
}

/// drop_too_long() with a cap of four tokens on a single rank.
WindowSegments drop_too_long(Group& group, WindowSegments segments, MetricsBag& metrics) {
  const test::TempDir directory;
  std::ostringstream out;
  Terminal terminal(out, out, {});
  const Dataset data;
  PixelStore pixels(PixelStore::Options{});
  BadSamples bad(data, pixels, terminal, group,
                 {.skips = true, .run_dir = directory.path(), .max_length = 4});
  return bad.drop_too_long(std::move(segments), metrics);
}

}  // namespace

TEST(BadSamples, LongSegmentsAreCountedOnceOverAllRanks) {
  test::run_ranks(3, [](Group& group) {
    WindowSegments segments{{of_length(3), of_length(5)}, {of_length(4)}};
    if (group.rank() == 2) segments = {{of_length(9)}};  // this rank keeps none
    MetricsBag metrics;
    segments = drop_too_long(group, std::move(segments), metrics);
    EXPECT_EQ(segments[0].size(), group.rank() == 2 ? 0u : 1u);
    EXPECT_EQ(metrics.values("data/skipped_samples"),
              group.rank() == 0 ? std::vector<double>{3} : std::vector<double>{});
  });
}

TEST(BadSamples, AWindowOfLongSegmentsEndsTheRunOnAllRanks) {
  test::run_ranks(2, [](Group& group) {
    WindowSegments segments{{of_length(5)}};
    MetricsBag metrics;
    EXPECT_THROW(drop_too_long(group, segments, metrics), BadSample);
  });
}

TEST(BadSamples, WithoutLongSegmentsNothingIsObserved) {
  test::run_ranks(2, [](Group& group) {
    WindowSegments segments;
    if (group.rank() == 0) segments = {{of_length(4)}};
    MetricsBag metrics;
    segments = drop_too_long(group, std::move(segments), metrics);
    EXPECT_TRUE(metrics.all().empty());
  });
}

}  // namespace rematch
