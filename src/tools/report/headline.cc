#include "tools/report/sections.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/evaluate/answer_counts.h"

namespace rematch {
namespace {

constexpr size_t kNumbers = 3, kInSentence = 2;

constexpr ScoreKind kTelling[] = {{"eval_rollout_f1_iou50", "F1 @ .5", 1},
                                  {"eval_rollout_f1_labels_iou50", "label F1 @ .5", 1},
                                  {"coco_ap", "COCO AP", 1},
                                  {"eval_rollout_f1", "gate F1", 1},
                                  {"eval_rollout_f1_labels", "gate label F1", 1},
                                  {"eval_rollout_label_accuracy", "label accuracy", 1},
                                  {"eval_loss", "loss on the truth", -1}};

/// Three digits; ".676" for shares.
std::string short_score(double value, int better) {
  if (better < 0) return fmt::format("{:.3g}", value);
  const std::string text = fmt::format("{:.3f}", value);
  return text.starts_with("0.") ? text.substr(1) : text;
}

Json number_json(const ScoreKind& kind, std::optional<double> before, double now) {
  const std::string shown = short_score(now, kind.better);
  const std::string earlier = before ? short_score(*before, kind.better) : "";
  const bool is_same = !before || earlier == shown;
  return {{"label", kind.label},
          {"before", earlier},
          {"now", shown},
          {"change", is_same                                ? 0
                     : (now > *before) == (kind.better > 0) ? 1
                                                            : -1}};
}

/// "F1 @ .5 .361 → .676, label F1 @ .5 .177 → .409".
std::string describe_numbers(const Json& numbers) {
  Strings parts;
  for (const Json& number : numbers) {
    if (parts.size() == kInSentence) break;
    const auto text = [&](const char* key) { return number[key].get<std::string>(); };
    parts.push_back(text("label") + " " + (text("before").empty() ? "" : text("before") + " → ") +
                    text("now"));
  }
  return join(parts, ", ");
}

Json evaluated_headline(const std::vector<NamedEvaluation>& evaluations) {
  const EvaluationFile& now = *evaluations.back().file;
  const NamedEvaluation* const baseline = find_baseline(evaluations);
  Json numbers = Json::array();
  for (const ScoreKind& kind : kTelling) {
    const std::optional<double> value = now.score(kind.key);
    if (!value || numbers.size() == kNumbers) continue;
    numbers.push_back(
        number_json(kind, baseline ? baseline->file->score(kind.key) : std::nullopt, *value));
  }
  std::string sentence =
      numbers.empty() ? evaluations.back().name + " was evaluated" : describe_numbers(numbers);
  const AnswerCounts counts = evaluation_counts([&](const char* key) { return now.score(key); },
                                                std::llround(now.score("num_samples").value_or(0)));
  if (const std::string unread = counts.finding(); !unread.empty()) sentence += "; " + unread;
  if (const std::optional<NameCollapse> collapse = collapse_in(now))
    sentence += "; " + collapse->text();
  std::string about = evaluations.back().name;
  if (now.name.starts_with("checkpoint-") && !about.ends_with(now.name))
    about += " (" + now.name + ")";  // of a run that has others
  if (baseline != nullptr) about = baseline->name + " → " + about;
  if (const std::optional<double> count = now.score("num_samples"))
    about += ", " + counted(static_cast<int64_t>(*count), "image");
  return {{"sentence", sentence + "."}, {"about", about}, {"numbers", std::move(numbers)}};
}

/// Headline of a run without an evaluation, which has a log.
Json logged_headline(const RunData& run) {
  std::optional<double> first, last;
  for (const LoggedStep& step : run.log) {
    const auto found = step.values.find("loss");
    if (found == step.values.end()) continue;
    if (!first) first = found->second;
    last = found->second;
  }
  Json numbers = Json::array();
  if (last) numbers.push_back(number_json({"loss", "loss", -1}, first, *last));
  const std::string steps = fmt::format("{} steps without an evaluation", run.log.back().step);
  return {{"sentence", (last ? describe_numbers(numbers) + " in " : "") + steps + "."},
          {"about", run.name},
          {"numbers", std::move(numbers)}};
}

}  // namespace

Json collect_headline(const std::vector<RunData>& runs,
                      const std::vector<NamedEvaluation>& evaluations) {
  return evaluations.empty() ? logged_headline(runs.back()) : evaluated_headline(evaluations);
}

}  // namespace rematch
