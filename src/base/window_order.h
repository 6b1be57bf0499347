#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace rematch {

/// Item 0 of each rank in rank order, then item 1 of each, …: window order, because the
/// micro-batches of a window are distributed round-robin. Ranks may have different numbers of
/// items.
template <typename T>
std::vector<T> in_window_order(std::vector<std::vector<T>> by_rank) {
  std::vector<T> all;
  for (size_t index = 0;; ++index) {
    const size_t before = all.size();
    for (std::vector<T>& items : by_rank) {
      if (index < items.size()) all.push_back(std::move(items[index]));
    }
    if (all.size() == before) return all;
  }
}

/// The items of a rank: item `rank`, item `rank` + `size`, ….
template <typename T>
std::vector<T> own_part(std::vector<T> all, size_t rank, size_t size) {
  std::vector<T> own;
  for (size_t i = rank; i < all.size(); i += size) own.push_back(std::move(all[i]));
  return own;
}

}  // namespace rematch
