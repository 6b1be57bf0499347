// Packing on several ranks: the buffer of each holds its own segments only.
#include <gtest/gtest.h>

#include <algorithm>

#include "learn/pack/packer.h"
#include "pack/segments.h"
#include "support/ranks.h"

namespace rematch {

// spec: select-04 pack-08
TEST(RankPacking, EachRankTrainsItsOwnSegmentsAndKeepsItsOwnRest) {
  // Lengths of three micro-batches of each rank; some do not fit a row of ten.
  const std::vector<std::vector<std::vector<int>>> lengths{{{4, 9, 3, 8}, {3, 2}, {7, 7}},
                                                           {{6, 6, 6}, {5, 5, 5}, {1, 9}}};
  test::run_ranks(2, [&](Group& group) {
    Packer packer({.pack = {.enabled = true, .scope = PackScope::kCarry}, .packing_length = 10});
    std::vector<int64_t> given, trained;
    int64_t next_id = 100 * group.rank();
    for (const std::vector<int>& lens : lengths[static_cast<size_t>(group.rank())]) {
      const auto segments = test::segments_of(next_id, lens);
      next_id += std::ssize(lens);
      for (const int64_t id : test::ids_of(segments)) given.push_back(id);
      MetricsBag metrics;
      const std::vector<PackedRow> rows = packer.pack({segments}, metrics);
      ASSERT_EQ(rows.size(), 1u);
      for (const int64_t id : test::ids_of(rows[0].segments)) trained.push_back(id);
      group.barrier();  // ranks take turns step by step
    }
    const std::vector<int64_t> waiting = test::ids_of(packer.waiting());
    EXPECT_FALSE(waiting.empty());
    std::vector<int64_t> all = trained;
    all.insert(all.end(), waiting.begin(), waiting.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, given) << "rank " << group.rank();
  });
}

}  // namespace rematch
