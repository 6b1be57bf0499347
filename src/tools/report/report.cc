#include "tools/report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/report/score_table.h"
#include "tools/report/sections.h"

namespace rematch {
namespace {

constexpr size_t kMaxClasses = 40;

/// A share; null for an empty denominator.
Json share_cell(const ScoreRow& row, const char* key, double whole) {
  return whole > 0 ? Json(row.value(key)) : Json();
}

Json f1_cell(const ScoreRow& row) {
  return share_cell(row, "f1_labels", row.value("truths") + row.value("predictions"));
}

/// COCO's AP of a class; null without truths.
Json ap_cell(const ScoreRow& row) {
  const double ap = row.value("coco_ap", -1);
  return ap < 0 ? Json() : Json(ap);
}

/// A table by class or by number of objects: its header, then its rows.
/// @param before  rows of the first evaluation, for a column with its F1; may be empty
Json collect_rows(const char* first, const std::vector<ScoreRow>& rows,
                  const std::vector<ScoreRow>& before) {
  Json table = Json::array();
  if (rows.empty()) return table;
  table.push_back({first,
                   std::string_view(first) == "class" ? "images with it or an answer" : "images",
                   "truths", "answers", "recall", "label precision", "label recall", "label F1"});
  const bool with_ap =
      std::ranges::any_of(rows, [](const ScoreRow& row) { return row.values.contains("coco_ap"); });
  if (with_ap) table[0].push_back("AP");
  if (!before.empty()) table[0].push_back("label F1 before");
  for (const ScoreRow& row : rows) {
    if (table.size() > kMaxClasses) break;
    const double truths = row.value("truths"), predictions = row.value("predictions");
    Json cells = Json::array({row.name, static_cast<int64_t>(row.value("images")),
                              static_cast<int64_t>(truths), static_cast<int64_t>(predictions),
                              share_cell(row, "recall", truths),
                              share_cell(row, "precision_labels", predictions),
                              share_cell(row, "recall_labels", truths), f1_cell(row)});
    if (with_ap) cells.push_back(ap_cell(row));
    if (!before.empty()) {
      const auto same = std::ranges::find(before, row.name, &ScoreRow::name);
      cells.push_back(same == before.end() ? Json() : f1_cell(*same));
    }
    table.push_back(std::move(cells));
  }
  return table;
}

/// The configuration of a run as text; empty when it is not known.
std::string config_text(const RunData& run) {
  std::string text = run.effective;
  if (text.empty()) {
    for (const auto& [key, value] : run.config) text += key + ": " + value + "\n";
  }
  return text;
}

}  // namespace

std::string report_html(const std::vector<RunData>& runs, const GalleryOptions& gallery) {
  const Json none = Json::array();
  const std::vector<NamedEvaluation> evaluations = list_evaluations(runs);
  Json data{{"title", runs.back().name},
            {"headline", collect_headline(runs, evaluations)},
            {"scores", nullptr},
            {"last", nullptr},
            {"note", ""},
            {"curves", collect_curves(runs)},
            {"classes", none},
            {"counts", none},
            {"confidence", nullptr},
            {"gallery", nullptr},
            {"settings", none}};
  for (const RunData& run : runs) {
    const std::string text = config_text(run);
    if (!text.empty()) data["settings"].push_back({{"name", run.name}, {"text", text}});
  }

  if (!evaluations.empty()) {
    const EvaluationFile& now = *evaluations.back().file;
    const NamedEvaluation* const baseline = find_baseline(evaluations);
    const EvaluationFile* const before = baseline == nullptr ? nullptr : baseline->file;
    const EvaluationFile compared = before == nullptr ? EvaluationFile{} : *before;
    data["last"] = evaluations.back().name;
    data["scores"] = score_table(evaluations);
    data["note"] = different_sets(evaluations);
    data["classes"] = collect_rows("class", now.per_class, compared.per_class);
    data["counts"] = collect_rows("objects", now.per_count, compared.per_count);
    data["confidence"] = collect_confidence(now);
    if (!now.samples_path.empty()) data["gallery"] = collect_gallery(now, before, gallery);
  }
  return fill_page(data);
}

}  // namespace rematch
