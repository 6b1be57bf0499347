// The fullest possible row, by dynamic programming over (segments from i on, total).
//
// A row of rooms says how cheaply the segments from i on reach each total: kMost - (fewest
// segments), 0 when they cannot. One segment more, of length w, gives max(room[s], room[s - w] -
// 1): a few byte operations for a whole vector of totals. Only the rows at the starts of blocks are
// kept; the walk that picks the segments recomputes the rows inside a block, for the few totals it
// can still reach there.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "pack/select_rules.h"

namespace rematch {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 30;

// next[s] for low ≤ s ≤ high, from the row without this segment. The rows do not overlap.
template <class Room>
void add_segment(const Room* __restrict row, Room* __restrict next, int64_t len, int64_t low,
                 int64_t high) {
  const int64_t first_with = std::clamp(len, low, high + 1);
  std::copy(row + low, row + first_with, next + low);
  for (int64_t s = first_with; s <= high; ++s) {
    const Room with = static_cast<Room>(std::max<Room>(row[s - len], 1) - 1);
    next[s] = std::max(row[s], with);
  }
}

template <class Room>
class FewestSegments {
 public:
  // lens: of the segments other than the oldest. residual: most they may sum to. reached: a sum
  // known to be possible.
  FewestSegments(std::span<const int> lens, int64_t residual, int64_t reached)
      : lens_(lens),
        width_(residual + 1),
        block_len_(std::max(1, static_cast<int>(std::sqrt(static_cast<double>(lens.size()))))) {
    num_blocks_ = (std::ssize(lens) + block_len_ - 1) / block_len_;
    const int64_t num_rows = num_blocks_ + 1 + block_len_;
    if (width_ > kMaxBytes / (num_rows * static_cast<int64_t>(sizeof(Room)))) {
      throw UserError(
          ErrorKind::kConfig,
          {.error = "the packing selector `optimal` would need more than 1 GiB",
           .where = "packing_selector",
           .what = fmt::format("{} segments for {} tokens of a row", lens.size(), residual),
           .fix = "set `packing_selector: binpacking`, or lower `global_max_length` or "
                  "`training.packing_buffer`"});
    }
    rows_ = std::make_unique_for_overwrite<Room[]>(width_ * num_rows);
    std::fill_n(kept(num_blocks_), width_, Room{0});
    kept(num_blocks_)[0] = kMost;
    int64_t before = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    for (int64_t block = num_blocks_ - 1; block >= 0; --block) {
      for (const int len : block_of(block)) before -= len;
      make_rows(block, std::max<int64_t>(0, reached - before), residual);
    }
  }

  // Positions in lens, ascending: the largest total, then the fewest, then the lexicographically
  // smallest.
  std::vector<int> pick() {
    int64_t rest = width_ - 1;
    while (kept(0)[rest] == 0) --rest;
    std::vector<int> picked;
    for (int64_t block = 0; block < num_blocks_ && rest > 0; ++block) {
      make_rows(block, rest, rest);
      const auto lens = block_of(block);
      for (int64_t i = 0; i < std::ssize(lens); ++i) {
        const Room* after = row_inside(block, i + 1);
        if (lens[i] > rest) continue;
        const Room with = after[rest - lens[i]];
        if (with <= 1 || with - 1 < after[rest]) continue;  // equally few: the smaller index wins
        picked.push_back(static_cast<int>(block * block_len_ + i));
        rest -= lens[i];
      }
    }
    return picked;
  }

 private:
  static constexpr Room kMost = std::numeric_limits<Room>::max();

  std::span<const int> block_of(int64_t block) const {
    return lens_.subspan(block * block_len_,
                         std::min<int64_t>(block_len_, std::ssize(lens_) - block * block_len_));
  }
  Room* kept(int64_t block) { return &rows_[width_ * block]; }
  // The row of the segments from number i of the block on.
  Room* row_inside(int64_t block, int64_t i) {
    if (i == 0) return kept(block);
    if (i == std::ssize(block_of(block))) return kept(block + 1);
    return &rows_[width_ * (num_blocks_ + i)];
  }

  // Rows of a block from the kept row after it: right for totals up to `high` and, at its start,
  // from `low` on.
  void make_rows(int64_t block, int64_t low, int64_t high) {
    const auto lens = block_of(block);
    int64_t before = std::accumulate(lens.begin(), lens.end(), int64_t{0});
    for (int64_t i = std::ssize(lens) - 1; i >= 0; --i) {
      before -= lens[i];
      add_segment(row_inside(block, i + 1), row_inside(block, i), lens[i],
                  std::max<int64_t>(0, low - before), high);
    }
  }

  std::span<const int> lens_;
  int64_t width_;  // of a row: totals 0 … residual
  int64_t block_len_;
  int64_t num_blocks_ = 0;
  std::unique_ptr<Room[]> rows_;  // num_blocks_ + 1 kept ones, then those inside the current block
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

Selection optimal_by_counts(std::span<const int> encoded_lens, int packing_length) {
  const int residual = packing_length - encoded_lens[0];
  std::vector<int> order = longest_first(encoded_lens, residual);
  const int64_t most = most_segments(encoded_lens, order, residual);
  std::sort(order.begin(), order.end());
  std::vector<int> lens;
  for (const int i : order) lens.push_back(encoded_lens[i]);
  const int64_t reached = select_fifo(encoded_lens, packing_length).total - encoded_lens[0];
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

Selection select_optimal(std::span<const int> encoded_lens, int packing_length) {
  int64_t sum = encoded_lens[0];
  for (const int i : longest_first(encoded_lens, packing_length - encoded_lens[0]))
    sum += encoded_lens[i];
  // everything that can share the row fits
  if (sum <= packing_length) return select_fifo(encoded_lens, packing_length);
  if (std::optional<Selection> full = optimal_by_exchange(encoded_lens, packing_length))
    return *std::move(full);
  return optimal_by_counts(encoded_lens, packing_length);
}

}  // namespace rematch
