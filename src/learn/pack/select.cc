#include "learn/pack/select.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "learn/pack/select_rules.h"

namespace rematch {

PackingSelector packing_selector(const std::string& name) {
  if (const std::optional<PackingSelector> selector = value_of<PackingSelector>(name))
    return *selector;
  const std::string names = join(all_names<PackingSelector>(), ", ");
  throw config_error(
      {.error = fmt::format("unknown packing selector \"{}\"", name),
       .where = "packing_selector",
       .what = fmt::format("this build has {}", names),
       .fix = fmt::format("set `packing_selector` to one of {}, or `training.packing: false`",
                          names)});
}

Selection select_fifo(std::span<const int> encoded_lens, int packing_length) {
  Selection selection;
  for (size_t i = 0; i < encoded_lens.size(); ++i) {
    if (selection.total + encoded_lens[i] > packing_length) continue;
    selection.indices.push_back(static_cast<int>(i));
    selection.total += encoded_lens[i];
  }
  return selection;
}

std::vector<int> longest_first(std::span<const int> encoded_lens, int64_t longest) {
  std::vector<int> order;
  for (size_t i = 1; i < encoded_lens.size(); ++i) {
    if (encoded_lens[i] <= longest) order.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(order, std::greater(), [&](int i) { return encoded_lens[i]; });
  return order;
}

Selection select_segments(PackingSelector selector, std::span<const int> encoded_lens,
                          int packing_length) {
  REMATCH_CHECK(packing_length >= 1);
  for (const int len : encoded_lens) {
    REMATCH_CHECK(len >= 1 && len <= packing_length);
  }
  if (encoded_lens.empty()) return {};
  switch (selector) {
    case PackingSelector::kBinpacking: return select_binpacking(encoded_lens, packing_length);
    case PackingSelector::kOptimal: return select_optimal(encoded_lens, packing_length);
    case PackingSelector::kFifo: return select_fifo(encoded_lens, packing_length);
  }
  check_failed(__FILE__, __LINE__, "a known selector",
               fmt::format("{}", static_cast<int>(selector)));
}

}  // namespace rematch
