#include "report/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace rematch {
namespace {

struct Chart {
  const char* title;
  const char* key;         ///< of training steps
  const char* evaluation;  ///< of evaluations; may be empty
};

constexpr Chart kCharts[] = {
    {"loss", "loss", "eval_loss"},
    {"F1 of rollouts", "rollout/f1", "eval_rollout_f1"},
    {"label F1 of rollouts", "rollout/f1_labels", "eval_rollout_f1_labels"},
    {"label accuracy of matches", "rollout/label_accuracy", "eval_rollout_label_accuracy"},
    {"predictions per truth", "rollout/pred_per_gt", "eval_rollout_pred_per_gt"},
    {"repeated predictions", "rollout/duplicates", "eval_rollout_duplicates"},
    {"truncated answers", "rollout/parse_truncated_rate", "eval_rollout_parse_truncated_rate"},
    {"learning rate", "learning_rate", ""},
    {"gradient norm", "grad_norm", ""},
    {"seconds a step", "time/step_s", ""}};

constexpr std::pair<const char*, const char*> kTimeParts[] = {
    {"time/rollout_generate_s", "generating"},
    {"time/rollout_parse_match_s", "parsing, matching"},
    {"time/rollout_teacher_encode_s", "targets"},
    {"time/forward_s", "forward"},
    {"time/backward_s", "backward"},
    {"time/optimizer_s", "optimizer"}};

constexpr size_t kMaxPoints = 400;

using Points = std::vector<std::pair<double, double>>;

/// Means of `group` neighbours, to five digits: the shape of the curve stays, the file stays small.
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

/// A run's part of a chart.
Json collect_curve(const RunData& run, const Chart& chart) {
  std::vector<Points> lines;
  Points dots;
  size_t num_points = 0;
  for (const LoggedStep& step : run.log) {
    const auto x = static_cast<double>(step.step);
    const auto finite_value = [&step](const char* key) {
      const auto found = step.values.find(key);
      return found != step.values.end() && std::isfinite(found->second) ? &found->second : nullptr;
    };
    if (const double* y = finite_value(chart.key)) {
      // A step number that falls is another start in the same directory.
      if (lines.empty() || x < lines.back().back().first) lines.emplace_back();
      lines.back().emplace_back(x, *y);
      ++num_points;
    }
    if (const double* y = finite_value(chart.evaluation)) dots.emplace_back(x, *y);
  }
  for (Points& line : lines) line = thin_out(line, (num_points + kMaxPoints - 1) / kMaxPoints);
  return {{"lines", lines}, {"dots", thin_out(dots, 1)}};
}

double mean_of(const RunData& run, const char* key) {
  double sum = 0;
  int count = 0;
  for (const LoggedStep& step : run.log) {
    const auto value = step.values.find(key);
    if (value == step.values.end()) continue;
    sum += value->second;
    ++count;
  }
  return count > 0 ? sum / count : 0;
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
    if (has_points) charts.push_back({{"title", chart.title}, {"runs", std::move(curves)}});
  }
  return {{"names", std::move(names)}, {"charts", std::move(charts)}};
}

Json collect_times(const std::vector<RunData>& runs) {
  Json times = Json::array();
  for (const RunData& run : runs) {
    const double step_s = mean_of(run, "time/step_s");
    if (step_s <= 0) continue;
    double known = 0;
    for (const auto& [key, name] : kTimeParts) known += mean_of(run, key);
    // On several ranks each time is that of the slowest rank.
    const double whole = std::max(step_s, known);
    Json parts = Json::array();
    for (const auto& [key, name] : kTimeParts)
      parts.push_back(Json::array({name, 100 * mean_of(run, key) / whole}));
    parts.push_back(Json::array({"other", 100 * (whole - known) / whole}));
    times.push_back({{"name", run.name}, {"step_s", step_s}, {"parts", std::move(parts)}});
  }
  return times;
}

}  // namespace rematch
