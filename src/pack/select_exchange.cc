// A full row of the fewest possible segments, by exchanges against the longest ones.
//
// Take the m longest segments that fill the row and overshoot it by `slack`; let p be the shortest
// of them. Leaving out one of length w instead of p shortens the row by w - p more, adding one of
// length w instead of p shortens it by p - w: costs that are never negative. So m segments fill the
// row exactly when as many of the m longest are left out as others are added and the costs sum to
// slack. For the smallest m slack is below one length, so there are few states (balance of left out
// and added, cost): far fewer than totals.
#include <algorithm>
#include <memory>

#include "pack/select_rules.h"

namespace rematch {
namespace {

constexpr double kMaxWords = 1 << 19;  // 4 MiB; beyond that, optimal_by_counts is as fast

// A segment whose exchange costs no more than the slack.
struct Candidate {
  int index;     // into encoded_lens
  int64_t cost;  // ≤ slack
  bool is_long;  // one of the m longest: may be left out; else may be added
};

// to[x] = from[x] | (the bits of from, `offset` words and `shift` bits up). `carry`: words from one
// 64 costs to the next, ≥ 2, > -offset. One word may be read past the end. The rows do not overlap.
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

// Which (balance, cost) the candidates from i on can make: a row of bits for each i. Balance: left
// out - added, ± max_exchanges at most. Bits of the same 64 costs are adjacent for all balances, so
// that one more candidate is one shifted "or" over the whole row; an empty border after the last
// balance separates the balances.
class ExchangeTable {
 public:
  ExchangeTable(std::span<const Candidate> candidates, int64_t slack, int64_t max_exchanges)
      : max_exchanges_(max_exchanges),
        stride_(2 * max_exchanges + 2),
        num_words_((slack / 64 + 1) * stride_) {
    bits_ = std::make_unique_for_overwrite<uint64_t[]>((num_words_ + 1) * (candidates.size() + 1));
    std::fill_n(row(candidates.size()), num_words_ + 1, 0);
    row(candidates.size())[max_exchanges] = 1;
    for (size_t i = candidates.size(); i-- > 0;) {
      const Candidate& candidate = candidates[i];
      const int64_t offset = candidate.cost / 64 * stride_ + (candidate.is_long ? 1 : -1);
      or_shifted(row(i + 1), row(i), num_words_, offset, stride_,
                 static_cast<int>(candidate.cost % 64));
      for (int64_t x = stride_ - 1; x < num_words_; x += stride_) row(i)[x] = 0;
      row(i)[num_words_] = 0;
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
    return (row(i)[cost / 64 * stride_ + balance + max_exchanges_] >> (cost % 64) & 1) != 0;
  }

 private:
  uint64_t* row(size_t i) const { return &bits_[(num_words_ + 1) * i]; }

  int64_t max_exchanges_;
  int64_t stride_;     // words of all balances, with the border
  int64_t num_words_;  // of a row; one more that stays empty follows
  std::unique_ptr<uint64_t[]> bits_;
};

// What is known before the table: the m longest, by how much they overshoot, and which segments may
// be exchanged.
struct Exchange {
  std::vector<bool> is_long;          // by index
  std::vector<Candidate> candidates;  // by ascending index
  int64_t slack = 0;
  int64_t max_exchanges = 0;
};

// order: longest first; its first m sum to residual + slack.
Exchange exchange_of(std::span<const int> encoded_lens, std::span<const int> order, size_t m,
                     int64_t slack) {
  Exchange exchange{.is_long = std::vector<bool>(encoded_lens.size()), .slack = slack};
  const int pivot = encoded_lens[order[m - 1]];
  for (size_t k = 0; k < m; ++k) exchange.is_long[order[k]] = true;
  int64_t cost = 0;  // of the cheapest exchanges
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

// The lexicographically smallest choice: at each candidate its index is taken if the rest can still
// make up for it.
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
  // The fewest, or one more when the slack is too small to be met; beyond that optimal_by_counts
  // takes over.
  for (const size_t last = std::min(m + 1, order.size()); m <= last;
       sum += encoded_lens[order[m++]]) {
    const Exchange exchange = exchange_of(encoded_lens, order, m, sum - residual);
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
