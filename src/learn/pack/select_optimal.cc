// Finds the fullest possible row by dynamic programming over (segments from i on, total).
//
// Table i holds a score for each total: kMost - (fewest of the segments from i on that reach it),
// or 0 if none do. Adding a segment of length w gives max(score[s], score[s - w] - 1): a few byte
// operations for a whole vector of totals. Only the tables at the starts of blocks are kept;
// picking the segments recomputes the tables inside a block, for the few totals it can still reach.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "learn/pack/select_rules.h"

namespace rematch {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

// Computes next[s] for low ≤ s ≤ high from the table without this segment. They do not overlap.
template <class Score>
void add_segment(const Score* __restrict table, Score* __restrict next, int64_t len, int64_t low,
                 int64_t high) {
  const int64_t first_with = std::clamp(len, low, high + 1);
  std::copy(table + low, table + first_with, next + low);
  for (int64_t s = first_with; s <= high; ++s) {
    const Score with = static_cast<Score>(std::max<Score>(table[s - len], 1) - 1);
    next[s] = std::max(table[s], with);
  }
}

template <class Score>
class FewestSegments {
 public:
  // lens: of the segments other than the oldest. residual: their largest allowed sum. reached: a
  // sum that is known to be possible.
  FewestSegments(std::span<const int> lens, int64_t residual, int64_t reached)
      : lens_(lens),
        width_(residual + 1),
        block_len_(std::max(1, static_cast<int>(std::sqrt(static_cast<double>(lens.size()))))) {
    num_blocks_ = (std::ssize(lens) + block_len_ - 1) / block_len_;
    const int64_t num_tables = num_blocks_ + 1 + block_len_;
    if (width_ > kMaxBytes / (num_tables * static_cast<int64_t>(sizeof(Score)))) {
      throw config_error(
          {.error = "the packing selector `optimal` would need more than 1 GiB",
           .where = "packing_selector",
           .what = fmt::format("{} segments for {} tokens of a row", lens.size(), residual),
           .fix = "set `packing_selector: binpacking`, or lower `global_max_length` or "
                  "`training.packing_buffer`"});
    }
    tables_ = std::make_unique_for_overwrite<Score[]>(width_ * num_tables);
    std::fill_n(kept(num_blocks_), width_, Score{0});
    kept(num_blocks_)[0] = kMost;
    int64_t before = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    for (int64_t block = num_blocks_ - 1; block >= 0; --block) {
      for (const int len : block_lens(block)) before -= len;
      make_tables(block, std::max<int64_t>(0, reached - before), residual);
    }
  }

  // Positions in lens, ascending, of the selection with the largest total, then the fewest
  // segments, then the lexicographically smallest positions.
  std::vector<int> pick() {
    int64_t rest = width_ - 1;
    while (kept(0)[rest] == 0) --rest;
    std::vector<int> picked;
    for (int64_t block = 0; block < num_blocks_ && rest > 0; ++block) {
      make_tables(block, rest, rest);
      const auto lens = block_lens(block);
      for (int64_t i = 0; i < std::ssize(lens); ++i) {
        const Score* after = table_inside(block, i + 1);
        if (lens[i] > rest) continue;
        const Score with = after[rest - lens[i]];
        if (with <= 1 || with - 1 < after[rest]) continue;  // on a tie the smaller index wins
        picked.push_back(static_cast<int>(block * block_len_ + i));
        rest -= lens[i];
      }
    }
    return picked;
  }

 private:
  static constexpr Score kMost = std::numeric_limits<Score>::max();

  std::span<const int> block_lens(int64_t block) const {
    return lens_.subspan(block * block_len_,
                         std::min<int64_t>(block_len_, std::ssize(lens_) - block * block_len_));
  }
  Score* kept(int64_t block) { return &tables_[width_ * block]; }
  // The table of the segments from number i of the block on.
  Score* table_inside(int64_t block, int64_t i) {
    if (i == 0) return kept(block);
    if (i == std::ssize(block_lens(block))) return kept(block + 1);
    return &tables_[width_ * (num_blocks_ + i)];
  }

  // Computes the tables of a block from the kept one after it. They are valid for totals up to
  // `high` and, at the block's start, from `low` on.
  void make_tables(int64_t block, int64_t low, int64_t high) {
    const auto lens = block_lens(block);
    int64_t before = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    for (int64_t i = std::ssize(lens) - 1; i >= 0; --i) {
      before -= lens[i];
      add_segment(table_inside(block, i + 1), table_inside(block, i), lens[i],
                  std::max<int64_t>(0, low - before), high);
    }
  }

  std::span<const int> lens_;
  int64_t width_;  // of a table: totals 0 … residual
  int64_t block_len_;
  int64_t num_blocks_ = 0;
  // num_blocks_ + 1 kept tables, then those inside the current block
  std::unique_ptr<Score[]> tables_;
};

// Most segments that can share `residual` tokens; order: longest first.
int64_t most_segments(std::span<const int> encoded_lens, std::span<const int> order,
                      int64_t residual) {
  int64_t count = 0;
  for (auto i = order.rbegin(); i != order.rend() && encoded_lens[*i] <= residual; ++i, ++count)
    residual -= encoded_lens[*i];
  return count;
}

}  // namespace

Selection select_optimal(std::span<const int> encoded_lens, int packing_length) {
  const int residual = packing_length - encoded_lens[0];
  std::vector<int> order = longest_first(encoded_lens, residual);
  Selection fifo = select_fifo(encoded_lens, packing_length);
  // All segments that can share the row fit.
  if (fifo.indices.size() == order.size() + 1) return fifo;
  const int64_t most = most_segments(encoded_lens, order, residual);
  std::ranges::sort(order);
  std::vector<int> lens;
  for (const int i : order) lens.push_back(encoded_lens[i]);
  const int64_t reached = fifo.total - encoded_lens[0];
  std::vector<int> picked;
  if (most < std::numeric_limits<uint8_t>::max()) {
    picked = FewestSegments<uint8_t>(lens, residual, reached).pick();
  } else if (most < std::numeric_limits<uint16_t>::max()) {
    picked = FewestSegments<uint16_t>(lens, residual, reached).pick();
  } else {
    picked = FewestSegments<uint32_t>(lens, residual, reached).pick();
  }
  Selection selection{{0}, encoded_lens[0]};
  for (const int k : picked) {
    selection.indices.push_back(order[k]);
    selection.total += lens[k];
  }
  return selection;
}

}  // namespace rematch
