#include "tools/report/answer_sheet.h"

#include <fmt/core.h>

#include "base/error.h"
#include "model/vision/image.h"
#include "tools/draw/panel.h"
#include "tools/report/evaluated_sample.h"

namespace rematch {
namespace {

constexpr int kPanelPx = 320;
constexpr Rgb kRightColor{20, 60, 220}, kMisnamedColor{205, 105, 0};

Canvas draw_panel(const EvaluatedSample& sample, const std::vector<DrawnObject>& objects) {
  try {
    return scene_panel(load_image(sample.image_path), objects, kPanelPx);
  } catch (const UserError& error) {
    return blank_panel(error.problems().front().error, kPanelPx);
  }
}

Canvas draw_truth(const EvaluatedSample& sample) {
  std::vector<DrawnObject> objects;
  for (const SceneObject& object : sample.truth)
    objects.push_back({object.geometry, object.desc, kTruthColor});
  return draw_panel(sample, objects);
}

Canvas draw_answer(const EvaluatedSample& sample) {
  std::vector<DrawnObject> objects;
  for (size_t i = 0; i < sample.predictions.size(); ++i) {
    const SceneObject& object = sample.predictions[i];
    const std::vector<double> scores = sample.is_calibrated ? sample.scores : std::vector<double>();
    objects.push_back({object.geometry, scored_label(object.desc, scores, i), kPredictionColor});
  }
  for (size_t i = 0; i < sample.pairs.size(); ++i)
    objects.at(sample.pairs[i].first).color =
        sample.named_right.at(i) ? kRightColor : kMisnamedColor;
  return draw_panel(sample, objects);
}

}  // namespace

Canvas draw_answer_sheet(const std::vector<NamedEvaluation>& evaluations, int num_rows) {
  std::vector<std::pair<std::string, std::vector<EvaluatedSample>>> columns;
  for (const NamedEvaluation& evaluation : evaluations) {
    if (!evaluation.file->samples_path.empty())
      columns.emplace_back(evaluation.name, read_evaluated_samples(evaluation.file->samples_path));
  }
  if (columns.empty() || columns.front().second.empty()) {
    throw data_error({.error = "these runs have no answers to draw",
                      .where = "--sheet",
                      .what = "no evaluation has a file NAME.samples.jsonl with samples",
                      .fix = "run `rematch eval CHECKPOINT` for each"});
  }
  const std::vector<EvaluatedSample>& first = columns.front().second;
  std::vector<std::pair<std::string, Canvas>> panels;
  for (const size_t row : evenly_spaced_indices(first.size(), num_rows)) {
    panels.emplace_back(fmt::format("line {}: truth", first[row].sample_id + 1),
                        draw_truth(first[row]));
    for (const auto& [name, samples] : columns) {
      const EvaluatedSample* sample = find_same_image(samples, first[row]);
      panels.emplace_back(
          name, sample == nullptr ? blank_panel("not evaluated", kPanelPx) : draw_answer(*sample));
    }
  }
  return sheet_of(panels, static_cast<int>(columns.size()) + 1,
                  {{kTruthColor, "truth"},
                   {kRightColor, "found, right name"},
                   {kMisnamedColor, "found, wrong name"},
                   {kPredictionColor, "no such object"}});
}

}  // namespace rematch
