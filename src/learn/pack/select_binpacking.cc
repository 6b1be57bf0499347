// The rule of the specification: fifo, unless a bin of constant-volume best-fit-decreasing is
// fuller.
#include <algorithm>
#include <tuple>

#include "learn/pack/select_rules.h"

namespace rematch {
namespace {

// Segments that share a row with the oldest one.
struct Bin {
  int64_t total = 0;
  std::vector<int> indices;
};

// Longest first, each into the fullest bin with enough space (the lower bin on a tie), else into a
// new bin.
std::vector<Bin> best_fit_decreasing(std::span<const int> encoded_lens, int64_t volume) {
  std::vector<int64_t> totals;  // separate from the bins, because the search reads only these
  std::vector<Bin> bins;
  for (const int i : longest_first(encoded_lens, volume)) {
    int64_t fullest = -1;
    size_t chosen = totals.size();
    for (size_t b = 0; b < totals.size(); ++b) {
      if (totals[b] > fullest && totals[b] + encoded_lens[i] <= volume) {
        fullest = totals[b];
        chosen = b;
      }
    }
    if (chosen == totals.size()) {
      totals.push_back(0);
      bins.emplace_back();
    }
    totals[chosen] += encoded_lens[i];
    bins[chosen].indices.push_back(i);
  }
  for (size_t b = 0; b < bins.size(); ++b) {
    bins[b].total = totals[b];
    std::ranges::sort(bins[b].indices);
  }
  return bins;
}

bool is_better(const Bin& a, const Bin& b) {
  if (a.total != b.total) return a.total > b.total;
  return std::forward_as_tuple(a.indices.size(), a.indices) <
         std::forward_as_tuple(b.indices.size(), b.indices);
}

}  // namespace

Selection select_binpacking(std::span<const int> encoded_lens, int packing_length) {
  Selection selection = select_fifo(encoded_lens, packing_length);
  const int oldest = encoded_lens[0];
  std::vector<Bin> bins = best_fit_decreasing(encoded_lens, packing_length - oldest);
  const auto best = std::ranges::min_element(bins, is_better);
  if (best == bins.end() || oldest + best->total <= selection.total) return selection;
  best->indices.insert(best->indices.begin(), 0);
  return {std::move(best->indices), oldest + best->total};
}

}  // namespace rematch
