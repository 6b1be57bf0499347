#include "report/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/page.h"

namespace rematch {
namespace {

struct Chart {
  const char* title;
  const char* key;         ///< of training steps
  const char* evaluation;  ///< of evaluations, dots; may be empty
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

constexpr double kWidth = 340, kHeight = 190, kLeft = 52, kRight = 8, kTop = 8, kBottom = 22;
constexpr size_t kMaxPoints = 400;

using Points = std::vector<std::pair<double, double>>;

struct Series {
  std::vector<Points> lines;  ///< one for each start of the run
  Points dots;
};

/// Means of `group` neighbours: the shape of the curve stays, the file stays small.
Points thinned(const Points& line, size_t group) {
  Points thin;
  for (size_t begin = 0; begin < line.size(); begin += group) {
    double x = 0, y = 0;
    const size_t end = std::min(line.size(), begin + group);
    for (size_t i = begin; i < end; ++i) {
      x += line[i].first;
      y += line[i].second;
    }
    thin.emplace_back(x / static_cast<double>(end - begin), y / static_cast<double>(end - begin));
  }
  return thin;
}

Series series_of(const RunData& run, const Chart& chart) {
  Series series;
  size_t num_points = 0;
  for (const LoggedStep& step : run.log) {
    if (const auto value = step.values.find(chart.key); value != step.values.end()) {
      const auto x = static_cast<double>(step.step);
      // A step number that falls is another start in the same directory.
      if (series.lines.empty() || x < series.lines.back().back().first) series.lines.emplace_back();
      series.lines.back().emplace_back(x, value->second);
      ++num_points;
    }
    if (const auto value = step.values.find(chart.evaluation); value != step.values.end())
      series.dots.emplace_back(step.step, value->second);
  }
  const size_t group = (num_points + kMaxPoints - 1) / kMaxPoints;
  for (Points& line : series.lines) line = thinned(line, group);
  return series;
}

std::string short_number(double value) {
  return std::fabs(value) >= 1000 || (value != 0 && std::fabs(value) < 0.01)
             ? fmt::format("{:.1e}", value)
             : fmt::format("{:.3g}", value);
}

/// The range of both axes.
struct Frame {
  double x0 = std::numeric_limits<double>::max(), x1 = std::numeric_limits<double>::lowest(),
         y0 = x0, y1 = x1;

  void include(const Points& points) {
    for (const auto& [x, y] : points) {
      if (!std::isfinite(y)) continue;
      x0 = std::min(x0, x);
      x1 = std::max(x1, x);
      y0 = std::min(y0, y);
      y1 = std::max(y1, y);
    }
  }
  void widen() {
    if (y0 > 0 && y0 < 0.5 * y1) y0 = 0;
    if (y1 - y0 < 1e-12) {
      y0 -= y0 == 0 ? 0 : std::fabs(y0) * 0.1;
      y1 += y1 == 0 ? 1 : std::fabs(y1) * 0.1;
    }
    if (x1 <= x0) x1 = x0 + 1;
  }
  double px(double x) const { return kLeft + (x - x0) / (x1 - x0) * (kWidth - kLeft - kRight); }
  double py(double y) const {
    return kHeight - kBottom - (y - y0) / (y1 - y0) * (kHeight - kTop - kBottom);
  }
};

std::string chart_html(const Chart& chart, const std::vector<RunData>& runs) {
  Frame frame;
  std::vector<Series> all;
  for (const RunData& run : runs) {
    all.push_back(series_of(run, chart));
    for (const Points& line : all.back().lines) frame.include(line);
    frame.include(all.back().dots);
  }
  if (frame.x1 < frame.x0) return "";
  frame.widen();
  std::string svg = fmt::format(
      "<div class=\"card\"><b>{}</b><svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">",
      chart.title, kWidth, kHeight, chart.title);
  for (const double share : {0.0, 0.5, 1.0}) {
    const double y = frame.y0 + share * (frame.y1 - frame.y0);
    svg += fmt::format(
        "<path class=\"axis\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        kLeft, frame.py(y), kWidth - kRight, kLeft - 5, frame.py(y) + 4, short_number(y));
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">step {}</text>",
      kLeft, kHeight - 6, short_number(frame.x0), kWidth - kRight, kHeight - 6,
      static_cast<int64_t>(frame.x1));
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Points& line : all[i].lines) {
      svg += fmt::format("<polyline class=\"s{}\" points=\"", series_class(i));
      for (const auto& [x, y] : line) {
        if (std::isfinite(y)) svg += fmt::format("{:.1f},{:.1f} ", frame.px(x), frame.py(y));
      }
      svg += "\"/>";
    }
    for (const auto& [x, y] : all[i].dots) {
      if (std::isfinite(y))
        svg += fmt::format("<circle class=\"f{}\" r=\"3.2\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>",
                           series_class(i), frame.px(x), frame.py(y));
    }
  }
  return svg + "</svg></div>\n";
}

struct TimePart {
  const char* key;
  const char* name;
};
constexpr TimePart kTimeParts[] = {{"time/rollout_generate_s", "generating"},
                                   {"time/rollout_parse_match_s", "parsing, matching"},
                                   {"time/rollout_teacher_encode_s", "targets"},
                                   {"time/forward_s", "forward"},
                                   {"time/backward_s", "backward"},
                                   {"time/optimizer_s", "optimizer"}};

double mean_of(const RunData& run, const std::string& key) {
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

std::string curves_html(const std::vector<RunData>& runs) {
  std::string charts, legend;
  for (const Chart& chart : kCharts) charts += chart_html(chart, runs);
  if (charts.empty()) return "";
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].log.empty())
      legend += legend_item(fmt::format("class=\"f{}\"", series_class(i)), html_text(runs[i].name));
  }
  return fmt::format(
      "<p class=\"soft\">Lines are training steps, dots evaluations.{}</p><div "
      "class=\"grid\">{}</div>\n",
      legend, charts);
}

std::string time_split_html(const std::vector<RunData>& runs) {
  std::string html;
  for (const RunData& run : runs) {
    const double step_s = mean_of(run, "time/step_s");
    if (step_s <= 0) continue;
    std::string bar, legend;
    double known = 0;
    for (const auto& [key, name] : kTimeParts) known += mean_of(run, key);
    // on several ranks each time is that of the slowest one
    const double whole = std::max(step_s, known);
    size_t part = 0;
    const auto add = [&](const char* name, double seconds, const std::string& fill) {
      const double percent = 100 * seconds / whole;
      if (percent < 0.05) return;
      bar += fmt::format("<span class=\"{}\" style=\"width:{:.2f}%\" title=\"{} {:.1f} %\"></span>",
                         fill, percent, name, percent);
      legend +=
          legend_item(fmt::format("class=\"{}\"", fill), fmt::format("{} {:.1f} %", name, percent));
    };
    for (const auto& [key, name] : kTimeParts)
      add(name, mean_of(run, key), "f" + series_class(part++));
    add("other", whole - known, "rest");
    html += fmt::format(
        "<div class=\"card\" style=\"margin-bottom:10px\"><b>{}</b>: {:.3g} s a step<div "
        "class=\"split\">{}</div><span "
        "class=\"soft\">{}</span></div>\n",
        html_text(run.name), step_s, bar, legend);
  }
  return html;
}

}  // namespace rematch
