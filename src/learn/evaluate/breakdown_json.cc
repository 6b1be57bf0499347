#include "learn/evaluate/breakdown_json.h"

#include <nlohmann/json.hpp>

namespace rematch {
namespace {

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

Json per_class_json(const Breakdown& breakdown, const CocoResult& coco) {
  const std::map<std::string, CocoScores> coco_scores(coco.per_class.begin(), coco.per_class.end());
  Json rows = Json::array();
  for (const BreakdownRow& row : breakdown.classes()) {
    Json json = row_json(row);
    if (const auto found = coco_scores.find(row.name); found != coco_scores.end())
      json["coco_ap"] = found->second.ap;
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
