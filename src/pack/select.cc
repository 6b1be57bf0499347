#include "pack/select.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "pack/select_rules.h"

namespace rematch {
namespace {

// The ONE list of selectors.
struct SelectorRow {
  const char* name;
  PackingSelector selector;
  Selection (*select)(std::span<const int> encoded_lens, int packing_length);
};
constexpr SelectorRow kSelectors[] = {
    {"binpacking", PackingSelector::kBinpacking, select_binpacking},
    {"optimal", PackingSelector::kOptimal, select_optimal},
    {"fifo", PackingSelector::kFifo, select_fifo},
};

}  // namespace

PackingSelector packing_selector(const std::string& name) {
  std::vector<std::string> names;
  for (const SelectorRow& row : kSelectors) {
    if (name == row.name) return row.selector;
    names.push_back(row.name);
  }
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("there is no packing selector \"{}\"", name), .where = "packing_selector",
                   .what = fmt::format("this build has {}", join(names, ", ")),
                   .fix = fmt::format("set `packing_selector` to one of {}, or `training.packing: false`", join(names, ", "))});
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

Selection select_segments(PackingSelector selector, std::span<const int> encoded_lens, int packing_length) {
  REMATCH_CHECK(packing_length >= 1, fmt::format("packing_length {}", packing_length));
  for (const int len : encoded_lens) {
    REMATCH_CHECK(len >= 1 && len <= packing_length, fmt::format("a length of {} for rows of {}", len, packing_length));
  }
  if (encoded_lens.empty()) return {};
  for (const SelectorRow& row : kSelectors) {
    if (row.selector == selector) return row.select(encoded_lens, packing_length);
  }
  check_failed(__FILE__, __LINE__, "selector is in the list", fmt::format("{}", static_cast<int>(selector)));
}

}  // namespace rematch
