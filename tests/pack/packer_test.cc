#include "learn/pack/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "pack/segments.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::ids_of;
using test::segments_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<int64_t>> ids_of_rows(const std::vector<PackedRow>& rows) {
  std::vector<std::vector<int64_t>> ids;
  for (const PackedRow& row : rows) ids.push_back(ids_of(row.segments));
  return ids;
}

}  // namespace

TEST(Packer, WithoutPackingEachMicroBatchIsARowAndNothingIsLogged) {
  Packer packer({});
  MetricsBag metrics;
  const auto rows = packer.pack({segments_of(3, {2, 5}), {}, segments_of(8, {1})}, metrics);
  EXPECT_THAT(ids_of_rows(rows), ElementsAre(ElementsAre(3, 4), ElementsAre(8)));
  EXPECT_EQ(rows[0].total_len(), 7);
  EXPECT_EQ(metrics.all().size(), 1u) << "the time alone";
  EXPECT_EQ(packer.summary_text(), "");
}

// spec: pack-08
TEST(Packer, CarryModeTrainsOneRowAMicroBatchAndKeepsTheRest) {
  Packer packer({.pack = {.selector = PackingSelector::kFifo, .scope = PackScope::kCarry},
                 .packing_length = 10});
  MetricsBag metrics;
  EXPECT_THAT(
      ids_of_rows(packer.pack({segments_of(0, {6, 7, 4}), segments_of(3, {3, 2})}, metrics)),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(ids_of(packer.waiting()), ElementsAre(4));
  // The next window continues with the waiting segments.
  EXPECT_THAT(ids_of_rows(packer.pack({segments_of(5, {9})}, metrics)),
              ElementsAre(ElementsAre(4)));
  EXPECT_THAT(ids_of(packer.waiting()), ElementsAre(5));
}

TEST(Packer, WindowScopeLeavesNothingWaitingWhateverTheBuffer) {
  Packer packer(
      {.pack = {.buffer = 1, .selector = PackingSelector::kFifo, .scope = PackScope::kWindow},
       .packing_length = 10});
  MetricsBag metrics;
  EXPECT_THAT(
      ids_of_rows(packer.pack({segments_of(0, {6, 7, 4}), segments_of(3, {3, 2})}, metrics)),
      ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4)));
  EXPECT_TRUE(packer.waiting().empty());
}

TEST(Packer, CountsEveryRowInTheMetrics) {
  Packer packer({.pack = {.selector = PackingSelector::kFifo, .scope = PackScope::kCarry},
                 .packing_length = 10});
  MetricsBag metrics;
  packer.pack({segments_of(0, {6, 7, 4}), segments_of(3, {3, 2})}, metrics);
  EXPECT_THAT(metrics.values("packing/post_rollout_fill"), ElementsAre(1.0, 1.0));
  EXPECT_THAT(metrics.values("packing/post_rollout_selected_total_len"), ElementsAre(10, 10));
  EXPECT_THAT(metrics.values("packing/post_rollout_segments"), ElementsAre(2, 2));
  EXPECT_THAT(metrics.values("packing/post_rollout_buffer"), ElementsAre(1, 1));
}

// spec: select-17
TEST(Packer, WarnsAboutAnUnderfilledRowWithItsNumbers) {
  std::vector<std::string> warnings;
  Packer packer({.pack = {.min_fill_ratio = 0.7, .scope = PackScope::kCarry},
                 .packing_length = 10,
                 .warn = [&](const std::string& text) { warnings.push_back(text); }});
  MetricsBag metrics;
  packer.pack({segments_of(0, {7})}, metrics);
  EXPECT_TRUE(warnings.empty()) << "at the target is not below it";
  packer.pack({segments_of(1, {6, 8})}, metrics);
  ASSERT_EQ(warnings.size(), 1u);
  for (const char* part : {"fill 0.600", "target 0.7", "1 segments", "1 waiting"})
    EXPECT_THAT(warnings[0], HasSubstr(part));
}

TEST(Packer, SummarisesTheRunInOneLine) {
  Packer packer({.pack = {.selector = PackingSelector::kFifo, .scope = PackScope::kCarry},
                 .packing_length = 10});
  MetricsBag metrics;
  packer.pack({segments_of(0, {6, 7, 4}), segments_of(3, {1, 5})}, metrics);
  EXPECT_EQ(packer.summary_text(),
            "packing: 2 rows of up to 10 tokens, mean fill 0.900, 4 segments, 18 tokens; as padded "
            "batches 26 (31 % padding avoided); "
            "1 segments were still waiting and not trained");
}

// spec: pack-06 select-02 select-06
// Each segment is trained exactly once or still waits, whole and in insertion order within its row.
RC_GTEST_PROP(Packer, LosesNoSegment, ()) {
  const auto scope = *rc::gen::element(PackScope::kCarry, PackScope::kWindow);
  const auto selector = *rc::gen::element(PackingSelector::kBinpacking, PackingSelector::kOptimal,
                                          PackingSelector::kFifo);
  Packer packer(
      {.pack = {.buffer = 100000, .selector = selector, .scope = scope}, .packing_length = 50});
  std::map<int64_t, int> times_seen, whole_lens;
  int64_t next_id = 0;
  const auto micro_batch =
      rc::gen::resize(12, rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 51)));
  const auto window =
      rc::gen::resize(4, rc::gen::container<std::vector<std::vector<int>>>(micro_batch));
  const auto windows =
      *rc::gen::resize(6, rc::gen::container<std::vector<std::vector<std::vector<int>>>>(window));
  for (const auto& window : windows) {
    std::vector<std::vector<std::shared_ptr<const Segment>>> micro_batches;
    for (const auto& lens : window) {
      micro_batches.push_back(segments_of(next_id, lens));
      for (const int len : lens) whole_lens[next_id++] = len;
    }
    MetricsBag metrics;
    for (const PackedRow& row : packer.pack(std::move(micro_batches), metrics)) {
      RC_ASSERT(row.total_len() <= 50);
      const auto ids = ids_of(row.segments);
      RC_ASSERT(!ids.empty() && std::is_sorted(ids.begin(), ids.end()));
      for (const int64_t id : ids) ++times_seen[id];
      for (const auto& segment : row.segments)
        RC_ASSERT(segment->encoded_len() == whole_lens[segment->sample_id]);  // not split
    }
    if (scope == PackScope::kWindow) RC_ASSERT(packer.waiting().empty());
  }
  for (const int64_t id : ids_of(packer.waiting())) ++times_seen[id];
  RC_ASSERT(static_cast<int64_t>(times_seen.size()) == next_id);
  for (const auto& [id, count] : times_seen) RC_ASSERT(count == 1);
}

}  // namespace rematch
