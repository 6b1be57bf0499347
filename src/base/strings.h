#pragma once
#include <algorithm>
#include <string>
#include <vector>

namespace rematch {

/// A list of texts.
using Strings = std::vector<std::string>;

/// As std::ranges::contains of C++23.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

}  // namespace rematch
