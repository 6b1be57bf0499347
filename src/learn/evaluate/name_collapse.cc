#include "learn/evaluate/name_collapse.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr double kLeastShare = 0.5, kLeastRatio = 2;

}  // namespace

void count_names(const Objects& truths, const Objects& predictions, const LabelMatch& labels,
                 NameCounts& counts) {
  for (const SceneObject& object : truths) ++counts[labels.canonical(object.desc)][0];
  for (const SceneObject& object : predictions) ++counts[labels.canonical(object.desc)][1];
}

std::string NameCollapse::text() const {
  const std::string start = fmt::format("{:.0f} % of answered names are \"{}\", which ",
                                        100 * predicted_share, printable(name));
  if (truth_share == 0) return start + "no truth has";
  return start + fmt::format("{:.2g} % of the truths have", 100 * truth_share);
}

std::optional<NameCollapse> find_collapse(const NameCounts& names) {
  double num_truths = 0, num_predictions = 0;
  for (const auto& [name, count] : names) {
    num_truths += count[0];
    num_predictions += count[1];
  }
  if (num_predictions < kFewestPredictions || num_truths == 0) return std::nullopt;
  const auto most =
      std::ranges::max_element(names, {}, [](const auto& name) { return name.second[1]; });
  const NameCollapse collapse{.name = most->first,
                              .predicted_share = most->second[1] / num_predictions,
                              .truth_share = most->second[0] / num_truths};
  const bool is_collapse = !collapse.name.empty() && collapse.predicted_share >= kLeastShare &&
                           collapse.predicted_share > kLeastRatio * collapse.truth_share;
  return is_collapse ? std::optional(collapse) : std::nullopt;
}

}  // namespace rematch
