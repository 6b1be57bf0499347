#include "tools/report/sections.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_fields.h"

namespace rematch {
namespace {

/// Calls visit(fields) for every object of a list.
template <typename Visit>
void for_entries(JsonFields& result, const std::string& key, const JsonOrigin& origin,
                 const Visit& visit) {
  if (!result.has(key)) return;
  const Json& list = result.list(key);
  for (size_t i = 0; i < list.size(); ++i) {
    JsonFields fields(list[i], origin, fmt::format("{}[{}]", result.place_of(key), i));
    visit(fields);
  }
}

Json collect_curves(JsonFields& result, const JsonOrigin& origin) {
  Json curves = Json::array();
  for_entries(result, "precision_recall", origin, [&](JsonFields& fields) {
    const Json& precision = fields.list("precision");
    for (const Json& value : precision) {
      if (!value.is_number()) fields.fail("precision", "expected numbers");
    }
    if (precision.size() < 2) fields.fail("precision", "expected two numbers or more");
    curves.push_back({{"name", fields.text("name")},
                      {"truths", fields.integer("truths")},
                      {"precision", precision}});
  });
  return curves;
}

Json collect_confusion(JsonFields& result, const JsonOrigin& origin) {
  Json table = Json::array();
  for_entries(result, "confusion", origin, [&](JsonFields& fields) {
    if (table.empty()) table.push_back({"truth → called", "times", "of matched", "share"});
    const int64_t count = fields.integer("count"), placed = fields.integer("placed", 1);
    table.push_back(
        {fields.text("truth") + " → " + fields.text("prediction"), fmt::format("{}", count),
         fmt::format("{}", placed),
         fmt::format("{:.3f}", static_cast<double>(count) / static_cast<double>(placed))});
  });
  return table;
}

Json collect_calibration(JsonFields& result, const JsonOrigin& origin) {
  if (!result.has("calibration")) return nullptr;
  JsonFields calibration = result.object("calibration");
  Json bins = Json::array();
  for_entries(calibration, "bins", origin, [&](JsonFields& fields) {
    bins.push_back({{"count", fields.integer("count")},
                    {"score", fields.number("score")},
                    {"precision", fields.number("precision")}});
  });
  const double error = calibration.number("error");  // 0 without predictions, which says nothing
  return {{"error", bins.empty() ? Json() : Json(error)}, {"bins", std::move(bins)}};
}

}  // namespace

Json collect_confidence(const EvaluationFile& evaluation) {
  if (evaluation.path.empty()) return nullptr;
  const JsonOrigin origin = run_file_origin(evaluation.path);
  const Json json = parse_document(read_file(evaluation.path), origin);
  JsonFields result(json, origin);
  if (!result.has("coco_ranking")) return nullptr;
  return {{"ranking", result.text("coco_ranking")},
          {"curves", collect_curves(result, origin)},
          {"confusion", collect_confusion(result, origin)},
          {"calibration", collect_calibration(result, origin)}};
}

}  // namespace rematch
