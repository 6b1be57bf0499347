#include "observe/catalog_page.h"

#include <fmt/core.h>

#include <string_view>

#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch::test {
namespace {

constexpr std::string_view kEvalPrefix = "eval_rollout_";

constexpr std::string_view kHead =
    "# Metrics\n\n"
    "Metrics of `logging.jsonl`, TensorBoard, evaluations, with reduction and unit, from "
    "`src/base/observe/catalog.cc`.\n\n"
    "- A line holds all optimizer steps since the one before (`training.logging_steps`), over all "
    "micro-batches and ranks. Counters are summed, losses and times averaged; means and "
    "percentiles are over samples; values are those of the last step. An undefined ratio is 0; "
    "what was not observed is absent.\n"
    "- Names in brackets without an item are raw counts.\n"
    "- Evaluations also hold precision, recall, F1 and mean maskIoU at IoU 0.5 (`rematch eval`: "
    "0.3 too): `…_iou50`.\n"
    "- `coco_…` (`rematch eval`) equal pycocotools' on boxes in pixels and canonical labels. "
    "Objects rank by score; without scores (`coco_ranking`: `order`) the k-th object of an answer "
    "has 1 - k/1000.\n\n";

/// Raw names joined with '+', as code.
std::string code(const std::string& joined) {
  return "`" + join(split(joined, '+'), "` + `") + "`";
}

std::string reduction_text(const MetricRow& row) {
  using enum Reduction;
  const std::string of = row.source == row.name ? "" : " of " + code(row.source);
  switch (row.reduction) {
    case kSum: return "sum" + of;
    case kMean: return "mean" + of;
    case kLast: return "value" + of;
    case kP90: return "90th percentile" + of;
    case kP99: return "99th percentile" + of;
    case kPerStep: return "sum of a step" + of;
    case kRatio: break;
  }
  const bool is_sum = row.denominator.find('+') != std::string::npos;
  return fmt::format("{}{} / {}", row.factor == 1 ? "" : fmt::format("{} · ", row.factor),
                     code(row.source),
                     is_sum ? "(" + code(row.denominator) + ")" : code(row.denominator));
}

/// True for eval_rollout_NAME if it is rollout/NAME on the validation records.
bool repeats_training(const MetricRow& row) {
  const std::string_view name = row.name;
  return name.starts_with(kEvalPrefix) &&
         row.meaning == fmt::format("as rollout/{}, on val_jsonl", name.substr(kEvalPrefix.size()));
}

}  // namespace

std::string metrics_markdown() {
  std::string text{kHead};
  std::vector<std::string> repeated;
  for (const MetricRow& row : metric_table()) {
    if (repeats_training(row)) {
      repeated.push_back(fmt::format("`{}`", row.name.substr(kEvalPrefix.size())));
      continue;
    }
    const std::string unit = row.unit == "1" ? "" : ", " + row.unit;
    text += fmt::format("- `{}` ({}{}): {}\n", row.name, reduction_text(row), unit, row.meaning);
  }
  text += fmt::format("- `{}…`, as `rollout/…` of the same name, on val_jsonl: {}", kEvalPrefix,
                      join(repeated, ", "));
  std::string page;
  for (const std::string& line : split(text, '\n'))
    page += wrapped(line, line.starts_with("- ") ? 2 : 0, 100) + "\n";
  return page;
}

}  // namespace rematch::test
