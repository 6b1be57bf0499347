#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace rematch {

/// The bytes of a token sequence and the position of each token in them.
struct TokenBytes {
  std::string bytes;
  std::vector<size_t> ends;  ///< offset after each token; ascending

  size_t begin_of(size_t token) const { return token == 0 ? 0 : ends[token - 1]; }

  /// Index of the token that covers exactly [begin, end); -1 when there is none. begin < end. Cost:
  /// O(log tokens).
  int token_exactly(size_t begin, size_t end) const {
    const auto found = std::lower_bound(ends.begin(), ends.end(), end);
    if (found == ends.end() || *found != end) return -1;
    const size_t token = static_cast<size_t>(found - ends.begin());
    return begin_of(token) == begin ? static_cast<int>(token) : -1;
  }
};

}  // namespace rematch
