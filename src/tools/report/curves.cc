#include "tools/report/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/report/score_table.h"

namespace rematch {
namespace {

struct Chart {
  const char* title;
  const char* key;         ///< metric of training steps; may be empty
  const char* evaluation;  ///< metric of evaluations; may be empty
  bool may_be_log = false;
};

constexpr Chart kCharts[] = {
    {"loss", "loss", "eval_loss", true},
    {"F1 @ IoU 0.5", "", "eval_rollout_f1_iou50"},
    {"label F1 @ IoU 0.5", "", "eval_rollout_f1_labels_iou50"},
    {"gate F1", "rollout/f1", "eval_rollout_f1"},
    {"gate label F1", "rollout/f1_labels", "eval_rollout_f1_labels"},
    {"label accuracy of matches", "rollout/label_accuracy", "eval_rollout_label_accuracy"},
    {"predictions per truth", "rollout/pred_per_gt", "eval_rollout_pred_per_gt"},
    {"repeated predictions", "rollout/duplicates", "eval_rollout_duplicates"},
    {"absent classes answered", "", "eval_rollout_absent_answered"},
    {"empty pictures answered", "", "eval_rollout_empty_answered"},
    {"malformed answers", "rollout/parse_malformed_rate", "eval_rollout_parse_malformed_rate"},
    {"truncated answers", "rollout/parse_truncated_rate", "eval_rollout_parse_truncated_rate"},
    {"learning rate", "learning_rate", ""},
    {"gradient norm", "grad_norm", "", true},
    {"seconds a step", "time/step_s", "", true}};

constexpr size_t kMaxPoints = 400;
constexpr double kLogRatio = 8;  ///< largest to smallest value that gets a logarithmic axis

using Points = std::vector<std::pair<double, double>>;

/// Means of `group` neighbours, to five digits, which keeps the file small.
Points thin_out(const Points& line, size_t group) {
  Points thin;
  for (size_t begin = 0; begin < line.size(); begin += group) {
    double x = 0, y = 0;
    const size_t end = std::min(line.size(), begin + group);
    for (size_t i = begin; i < end; ++i) {
      x += line[i].first;
      y += line[i].second;
    }
    const auto count = static_cast<double>(end - begin);
    thin.emplace_back(x / count, std::stod(fmt::format("{:.5g}", y / count)));
  }
  return thin;
}

/// Adds the point to the last line, or to a new one where the step number falls (the run was
/// started again in the same directory).
void add_point(std::vector<Points>& lines, double x, double y, bool continues) {
  if (lines.empty() || !continues || x < lines.back().back().first) lines.emplace_back();
  lines.back().emplace_back(x, y);
}

/// The curve of a run in a chart.
Json collect_curve(const RunData& run, const Chart& chart) {
  std::vector<Points> lines, dots;
  size_t num_points = 0;
  std::optional<EvaluationFile> previous;
  for (const LoggedStep& step : run.log) {
    const auto x = static_cast<double>(step.step);
    const auto finite_value = [&step](const char* key) {
      const auto found = step.values.find(key);
      return found != step.values.end() && std::isfinite(found->second) ? &found->second : nullptr;
    };
    if (const double* y = finite_value(chart.key)) {
      add_point(lines, x, *y, true);
      ++num_points;
    }
    if (const double* y = finite_value(chart.evaluation)) {
      EvaluationFile evaluation{.eval_set = step.eval_set, .scores = step.values};
      add_point(dots, x, *y, previous && over_same_set(*previous, evaluation));
      previous = std::move(evaluation);
    }
  }
  for (Points& line : lines) line = thin_out(line, (num_points + kMaxPoints - 1) / kMaxPoints);
  for (Points& group : dots) group = thin_out(group, 1);
  return {{"lines", lines}, {"dots", dots}};
}

/// True when a value of the curves is many times another, and all are above 0.
bool spans_magnitudes(const Json& curves) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Json& curve : curves) {
    for (const Json& kind : curve) {
      for (const Json& line : kind) {
        for (const Json& point : line) {
          least = std::min(least, point[1].get<double>());
          most = std::max(most, point[1].get<double>());
        }
      }
    }
  }
  return least > 0 && most >= kLogRatio * least;
}

}  // namespace

Json collect_curves(const std::vector<RunData>& runs) {
  Json names = Json::array(), charts = Json::array();
  for (const RunData& run : runs) names.push_back(run.log.empty() ? Json() : Json(run.name));
  for (const Chart& chart : kCharts) {
    Json curves = Json::array();
    bool has_points = false;
    for (const RunData& run : runs) {
      curves.push_back(collect_curve(run, chart));
      for (const Json& points : curves.back()) has_points = has_points || !points.empty();
    }
    if (!has_points) continue;
    const bool is_log = chart.may_be_log && spans_magnitudes(curves);
    charts.push_back({{"title", chart.title}, {"log", is_log}, {"runs", std::move(curves)}});
  }
  return {{"names", std::move(names)}, {"charts", std::move(charts)}};
}

}  // namespace rematch
