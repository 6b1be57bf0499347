#include "tools/report/sections.h"

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
  std::string title;
  std::string key;         ///< metric of training steps; may be empty
  std::string evaluation;  ///< metric of evaluations; may be empty
  bool may_be_log = false;
};

/// A chart for each score of the table, between those of the loss and of the optimizer.
std::vector<Chart> all_charts() {
  constexpr std::string_view kOfRollouts = "eval_rollout_";
  std::vector<Chart> charts{{"loss", "loss", "eval_loss", true}};
  for (const ScoreKind& kind : score_kinds()) {
    const std::string evaluation = kind.key;
    if (evaluation.starts_with(kOfRollouts))
      charts.push_back(
          {kind.label, "rollout/" + evaluation.substr(kOfRollouts.size()), evaluation});
  }
  charts.push_back({"learning rate", "learning_rate", ""});
  charts.push_back({"gradient norm", "grad_norm", "", true});
  charts.push_back({"seconds a step", "time/step_s", "", true});
  return charts;
}

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
    const auto finite_value = [&step](const std::string& key) {
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
  for (const Chart& chart : all_charts()) {
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
