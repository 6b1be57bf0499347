// Counts of the scorer and the probe over recorded answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/observe/terminal.h"
#include "e2e/recorded.h"
#include "learn/evaluate/probe.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr size_t kCut = 30;

/// Missing truths of every sample, by its index.
std::vector<std::set<int>> missing_of(test::RecordedStage2& stage2) {
  std::vector<std::set<int>> missing;
  for (int64_t i = 0; i < stage2.num_samples(); ++i) {
    const std::vector<int> list = stage2.score({i}).at(0).matching.false_negatives;
    missing.emplace_back(list.begin(), list.end());
  }
  return missing;
}

}  // namespace

TEST(LabelScores, SeeThroughAccentsCaseAndWhiteSpace) {
  test::RecordedStage2 stage2;
  const auto object = [](const char* desc, int left) {
    return SceneObject{desc, {GeometryKind::kBbox2d, {left, 100, left + 50, 200}}};
  };
  ScoredRollout one;
  one.ground_truth = {object("Caf\u00E9  table", 0), object("STRASSE", 100), object("cafe", 200),
                      object("red dog", 300)};
  for (const SceneObject& said : {object("cafe\u0301 TABLE", 0), object("stra\u00DFe", 100),
                                  object("caf\u00E9", 200), object(" Red\u00A0Dog", 300)}) {
    one.parsed.objects.push_back({.desc = said.desc, .geometry = said.geometry});
    const int at = static_cast<int>(one.matching.pairs.size());
    one.matching.pairs.emplace_back(at, at);
  }
  MetricsBag metrics;
  stage2.scorer().observe(one, one.matching, metrics);
  EXPECT_EQ(metrics.sum("rollout/matched"), 4);
  EXPECT_EQ(metrics.sum("rollout/matched_labels"), 3) << "all but the one without its accent";
}

TEST(SegmentLengths, CountThePrefixThatTheSegmentKeeps) {
  for (const std::string policy : {"append", "rewrite"}) {
    test::RecordedStage2 stage2;
    stage2.teach({.policy = policy});
    MetricsBag metrics;
    const WindowSegments segments = stage2.segments({{0, 1}, {2}}, metrics);
    int64_t prefix_len = 0;
    for (const auto& of_micro_batch : segments) {
      for (const auto& segment : of_micro_batch) prefix_len += segment->prefix_len;
    }
    EXPECT_EQ(metrics.values("rollout/prefix_len").size(), 3u);
    EXPECT_EQ(metrics.sum("rollout/prefix_len"), static_cast<double>(prefix_len)) << policy;
    EXPECT_EQ(prefix_len == 0, policy == "rewrite");
  }
}

TEST(Probe, CountsWhatIsMissingAndWhatAnyDrawHas) {
  test::RecordedStage2 cut, whole;
  cut.cut_answers(kCut);
  const std::vector<std::set<int>> missing = missing_of(cut),
                                   missing_from_whole = missing_of(whole);
  int64_t num_missing = 0, num_found = 0;
  for (size_t i = 0; i < missing.size(); ++i) {
    num_missing += static_cast<int64_t>(missing[i].size());
    num_found += std::count_if(missing[i].begin(), missing[i].end(),
                               [&](int g) { return missing_from_whole[i].count(g) == 0; });
  }
  ASSERT_GT(num_found, 0) << "the cut answers must lack something that the whole ones have";

  std::ostringstream out, err;
  Terminal terminal(out, err, {});
  Probe probe;
  probe.measure_greedy({.scorer = cut.scorer(), .source = {cut.engine()}, .batch_size = 3},
                       terminal, [](const ScoredRollout&) {});
  EXPECT_EQ(probe.numbers().total().num_found, 0);
  probe.measure_draws({.scorer = whole.scorer(), .source = {whole.engine()}, .batch_size = 3}, 2,
                      terminal);
  const ProbeNumbers numbers = probe.numbers();
  EXPECT_EQ(numbers.total().num_images, cut.num_samples());
  EXPECT_EQ(numbers.total().num_missing, num_missing);
  EXPECT_EQ(numbers.total().num_found, num_found) << "an object that two draws have counts once";
  EXPECT_EQ(numbers.total().num_truths - numbers.total().num_missing, numbers.num_matched);
  EXPECT_LE(numbers.num_in_order, numbers.num_neighbours);
  for (const ProbeBucket& bucket : numbers.by_count) {
    EXPECT_LE(bucket.min_objects * bucket.num_images, bucket.num_truths);
    EXPECT_GE(bucket.max_objects * bucket.num_images, bucket.num_truths);
  }
}

}  // namespace rematch
