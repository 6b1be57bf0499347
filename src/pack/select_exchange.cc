// Finds a full row of the fewest possible segments, by exchanges against the longest ones.
//
// Take the m longest segments that fill the row and overshoot it by `slack`; let p be the length of
// the shortest of them. Leaving out a segment of length w instead of p shortens the row by w - p
// more; adding one of length w instead of p shortens it by p - w. These costs are never negative.
// So m segments fill the row exactly if as many of the m longest are left out as others are added
// and the costs sum to the slack. For the smallest m the slack is below one length, so there are
// few pairs (balance of left out and added, cost): far fewer than totals.
#include <algorithm>
#include <memory>

#include "pack/select_rules.h"

namespace rematch {
namespace {

constexpr double kMaxWords = 1 << 19;  // 4 MiB; optimal_by_counts is as fast beyond that

// A segment with an exchange cost of at most the slack.
struct Candidate {
  int index;     // into encoded_lens
  int64_t cost;  // ≤ slack
  bool is_long;  // true: one of the m longest, may be left out; false: may be added
};

// to[x] = from[x] | (the bits of `from`, shifted by `offset` words and `shift` bits). `carry`:
// words between two groups of 64 costs, ≥ 2, > -offset. Reads up to one word past the end. The
// arrays do not overlap.
void or_shifted(const uint64_t* __restrict from, uint64_t* __restrict to, int64_t num_words,
                int64_t offset, int64_t carry, int shift) {
  const int64_t first_low = std::clamp<int64_t>(offset, 0, num_words);
  const int64_t first_full = std::min(offset + carry, num_words);
  std::copy(from, from + first_low, to);
  for (int64_t x = first_low; x < first_full; ++x) to[x] = from[x] | from[x - offset] << shift;
  for (int64_t x = first_full; x < num_words; ++x) {
    to[x] = from[x] | from[x - offset] << shift | from[x - offset - carry] >> 1 >> (63 - shift);
  }
}

// The pairs (balance, cost) that the candidates from i on can reach: one bit set for each i.
// Balance: left out - added, within ± max_exchanges. Bits of the same 64 costs are adjacent for all
// balances, so adding a candidate is one shifted "or" over the whole set; an empty border after the
// last balance keeps the groups apart.
class ExchangeTable {
 public:
  ExchangeTable(std::span<const Candidate> candidates, int64_t slack, int64_t max_exchanges)
      : max_exchanges_(max_exchanges),
        stride_(2 * max_exchanges + 2),
        num_words_((slack / 64 + 1) * stride_) {
    bits_ = std::make_unique_for_overwrite<uint64_t[]>((num_words_ + 1) * (candidates.size() + 1));
    std::fill_n(set(candidates.size()), num_words_ + 1, 0);
    set(candidates.size())[max_exchanges] = 1;
    for (size_t i = candidates.size(); i-- > 0;) {
      const Candidate& candidate = candidates[i];
      const int64_t offset = candidate.cost / 64 * stride_ + (candidate.is_long ? 1 : -1);
      or_shifted(set(i + 1), set(i), num_words_, offset, stride_,
                 static_cast<int>(candidate.cost % 64));
      for (int64_t x = stride_ - 1; x < num_words_; x += stride_) set(i)[x] = 0;
      set(i)[num_words_] = 0;
    }
  }

  static double words_needed(size_t num_candidates, int64_t slack, int64_t max_exchanges) {
    const int64_t words_per_set = slack / 64 + 1;
    const double num_words =
        static_cast<double>(words_per_set) * static_cast<double>(2 * max_exchanges + 2) + 1;
    return static_cast<double>(num_candidates + 1) * num_words;
  }

  bool can_make(size_t i, int64_t balance, int64_t cost) const {
    if (cost < 0 || balance < -max_exchanges_ || balance > max_exchanges_) return false;
    return (set(i)[cost / 64 * stride_ + balance + max_exchanges_] >> (cost % 64) & 1) != 0;
  }

 private:
  uint64_t* set(size_t i) const { return &bits_[(num_words_ + 1) * i]; }

  int64_t max_exchanges_;
  int64_t stride_;     // words of all balances, with the border
  int64_t num_words_;  // of a set; an empty word follows
  std::unique_ptr<uint64_t[]> bits_;
};

// The problem that the table solves: the m longest segments, their overshoot, and the segments that
// may be exchanged.
struct Exchange {
  std::vector<bool> is_long;          // by index
  std::vector<Candidate> candidates;  // by ascending index
  int64_t slack = 0;
  int64_t max_exchanges = 0;
};

// order: longest first; its first m sum to residual + slack.
Exchange make_exchange(std::span<const int> encoded_lens, std::span<const int> order, size_t m,
                       int64_t slack) {
  Exchange exchange{.is_long = std::vector<bool>(encoded_lens.size()), .slack = slack};
  const int pivot = encoded_lens[order[m - 1]];
  for (size_t k = 0; k < m; ++k) exchange.is_long[order[k]] = true;
  int64_t cost = 0;  // total of the cheapest exchanges
  for (size_t k = 0; k < m && m + k < order.size(); ++k) {
    cost += encoded_lens[order[m - 1 - k]] - encoded_lens[order[m + k]];
    if (cost > slack) break;
    ++exchange.max_exchanges;
  }
  std::vector<int64_t> costs(encoded_lens.size(), slack + 1);
  for (const int i : order) costs[i] = std::abs(encoded_lens[i] - pivot);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] <= slack)
      exchange.candidates.push_back({static_cast<int>(i), costs[i], exchange.is_long[i]});
  }
  return exchange;
}

// The lexicographically smallest choice: takes each candidate if the remaining ones can still reach
// the goal.
Selection pick(std::span<const int> encoded_lens, const Exchange& exchange,
               const ExchangeTable& table) {
  std::vector<bool> is_chosen = exchange.is_long;
  int64_t balance = 0, cost = exchange.slack;
  for (size_t i = 0; i < exchange.candidates.size(); ++i) {
    const Candidate& candidate = exchange.candidates[i];
    is_chosen[candidate.index] = candidate.is_long
                                     ? table.can_make(i + 1, balance, cost)
                                     : table.can_make(i + 1, balance + 1, cost - candidate.cost);
    if (is_chosen[candidate.index] == candidate.is_long) continue;
    balance += candidate.is_long ? -1 : 1;
    cost -= candidate.cost;
  }
  Selection selection{{0}, encoded_lens[0]};
  for (size_t i = 1; i < is_chosen.size(); ++i) {
    if (!is_chosen[i]) continue;
    selection.indices.push_back(static_cast<int>(i));
    selection.total += encoded_lens[i];
  }
  return selection;
}

}  // namespace

std::optional<Selection> optimal_by_exchange(std::span<const int> encoded_lens,
                                             int packing_length) {
  const int64_t residual = packing_length - encoded_lens[0];
  const std::vector<int> order = longest_first(encoded_lens, residual);
  int64_t sum = 0;
  size_t m = 0;
  while (m < order.size() && sum < residual) sum += encoded_lens[order[m++]];
  if (m == 0 || sum < residual) return std::nullopt;
  // Tries the fewest segments, then one more; beyond that optimal_by_counts takes over.
  for (const size_t last = std::min(m + 1, order.size()); m <= last;
       sum += encoded_lens[order[m++]]) {
    const Exchange exchange = make_exchange(encoded_lens, order, m, sum - residual);
    if (ExchangeTable::words_needed(exchange.candidates.size(), exchange.slack,
                                    exchange.max_exchanges) > kMaxWords)
      return std::nullopt;
    const ExchangeTable table(exchange.candidates, exchange.slack, exchange.max_exchanges);
    if (table.can_make(0, 0, exchange.slack)) return pick(encoded_lens, exchange, table);
    if (m == order.size()) break;
  }
  return std::nullopt;
}

}  // namespace rematch
