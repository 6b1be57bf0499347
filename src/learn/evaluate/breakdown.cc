#include "learn/evaluate/breakdown.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

namespace rematch {
namespace {

// Largest object count of each range; one more range follows the last.
constexpr size_t kRangeEnds[] = {0, 1, 2, 3, 5, 8, 12, 20};

size_t find_range(size_t count) {
  return static_cast<size_t>(std::ranges::lower_bound(kRangeEnds, count) - std::begin(kRangeEnds));
}

std::string range_name(size_t range) {
  const size_t last = std::size(kRangeEnds) - 1;
  if (range > last) return fmt::format("{}+", kRangeEnds[last] + 1);
  const size_t from = range == 0 ? 0 : kRangeEnds[range - 1] + 1;
  return from == kRangeEnds[range] ? fmt::format("{}", from)
                                   : fmt::format("{}–{}", from, kRangeEnds[range]);
}

Json row_json(const BreakdownRow& row) {
  return {{"name", row.name},
          {"images", row.num_images},
          {"truths", row.truths},
          {"predictions", row.predictions},
          {"placed", row.placed},
          {"placed_named", row.placed_named},
          {"precision_labels", row.precision_labels()},
          {"recall_labels", row.recall_labels()},
          {"f1_labels", row.f1_labels()},
          {"recall", row.recall()},
          {"f1", row.f1()}};
}

}  // namespace

void Breakdown::add(const Objects& truth, const Objects& predictions, const Matching& matching) {
  std::set<std::string> present;
  const auto class_row = [&](const SceneObject& object) -> BreakdownRow& {
    const std::string label = labels_.canonical(object.desc);
    BreakdownRow& row = classes_[label];
    row.name = label;
    if (present.insert(label).second) ++row.num_images;
    return row;
  };
  BreakdownRow& all = counts_[find_range(truth.size())];
  ++all.num_images;
  all.truths += truth.size();
  all.predictions += predictions.size();
  for (const SceneObject& object : truth) ++class_row(object).truths;
  for (const SceneObject& object : predictions) ++class_row(object).predictions;
  for (const auto& [p, t] : matching.pairs) {
    BreakdownRow& truth_row = class_row(truth[t]);
    BreakdownRow& prediction_row = class_row(predictions[p]);
    const bool named = truth_row.name == prediction_row.name;
    ++truth_row.placed;
    ++prediction_row.predictions_placed;
    truth_row.placed_named += named;
    if (!named) ++confused_[{truth_row.name, prediction_row.name}];
    ++all.placed;
    ++all.predictions_placed;
    all.placed_named += named;
  }
}

std::vector<BreakdownRow> Breakdown::classes() const {
  std::vector<BreakdownRow> rows;
  for (const auto& [name, row] : classes_) rows.push_back(row);
  std::ranges::stable_sort(rows, std::greater{}, &BreakdownRow::truths);
  return rows;
}

std::vector<Confusion> Breakdown::confusions(size_t most) const {
  std::vector<Confusion> all;
  for (const auto& [names, count] : confused_)
    all.push_back({names.first, names.second, count, classes_.at(names.first).placed});
  std::ranges::stable_sort(all, std::greater{}, &Confusion::count);
  if (all.size() > most) all.resize(most);
  return all;
}

std::vector<BreakdownRow> Breakdown::counts() const {
  std::vector<BreakdownRow> rows;
  for (const auto& [range, counted] : counts_) {
    rows.push_back(counted);
    rows.back().name = range_name(range);
  }
  return rows;
}

Json per_class_json(const Breakdown& breakdown, const CocoResult& coco) {
  const std::map<std::string, CocoScores> coco_scores(coco.per_class.begin(), coco.per_class.end());
  Json rows = Json::array();
  for (const BreakdownRow& row : breakdown.classes()) {
    Json json = row_json(row);
    if (const auto found = coco_scores.find(row.name); found != coco_scores.end())
      json["coco_ap"] = found->second[kAp];
    rows.push_back(std::move(json));
  }
  return rows;
}

Json per_count_json(const Breakdown& breakdown) {
  Json rows = Json::array();
  for (const BreakdownRow& row : breakdown.counts()) rows.push_back(row_json(row));
  return rows;
}

}  // namespace rematch
