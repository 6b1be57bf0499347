#include "report/report.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/curves.h"
#include "report/page.h"
#include "report/score_table.h"

namespace rematch {
namespace {

constexpr size_t kShownClasses = 40;

struct Fact {
  const char* name;
  const char* key;
  bool of_rollouts = false;  ///< says nothing of a stage that trains on the truth alone
};
constexpr Fact kFacts[] = {{"model", "model.model"},
                           {"trained on", "custom.train_jsonl"},
                           {"validated on", "custom.val_jsonl"},
                           {"trainer", "custom.trainer_variant"},
                           {"target policy", "custom.extra.rollout_matching.target_policy", true},
                           {"rollouts by", "custom.extra.rollout_matching.rollout_backend", true},
                           {"tuning", "tuner.train_type"},
                           {"learning rate", "training.learning_rate"},
                           {"samples a step", "training.effective_batch_size"},
                           {"seed", "training.seed"}};

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : "<h2>" + title + "</h2>\n" + body;
}

std::string facts_html(const std::vector<RunData>& runs) {
  std::string html;
  for (const RunData& run : runs) {
    std::string facts;
    const auto add = [&facts](const std::string& name, const std::string& value) {
      if (!value.empty() && value != "null")
        facts += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html_text(value));
    };
    if (!run.log.empty()) {
      const bool rolls_out = run.setting("custom.trainer_variant") == "rollout_matching_sft";
      for (const Fact& fact : kFacts) {
        if (rolls_out || !fact.of_rollouts) add(fact.name, run.setting(fact.key));
      }
      add("steps", fmt::format("{}", run.log.back().step));
    }
    for (const EvaluationFile& file : run.evaluations) {
      const auto count = file.scores.find("num_samples");
      if (!file.model.empty())
        add("evaluated",
            file.model +
                (count == file.scores.end() ? "" : fmt::format(", {:.0f} samples", count->second)));
    }
    if (!facts.empty())
      html += fmt::format("<div class=\"card\"><b>{}</b><dl>{}</dl></div>\n", html_text(run.name),
                          facts);
  }
  return html.empty() ? "" : "<div class=\"grid\">" + html + "</div>\n";
}

std::string health_html(const std::vector<HealthItem>& items) {
  std::string html;
  for (const HealthItem& item : items) {
    html += fmt::format("<li class=\"{}\">{}: <b>{}</b>", item.good ? "good" : "bad",
                        html_text(item.name), html_text(item.value));
    if (!item.good) html += fmt::format("<span class=\"advice\">{}</span>", html_text(item.advice));
    html += "</li>\n";
  }
  return html.empty() ? "" : "<div class=\"card\"><ul class=\"health\">" + html + "</ul></div>\n";
}

double value_of(const ScoreRow& row, const char* key) {
  const auto found = row.values.find(key);
  return found == row.values.end() ? 0.0 : found->second;
}

/// A share of a row, "-" where there is nothing to divide by.
std::string shown_share(const ScoreRow& row, const char* key, double whole) {
  return whole > 0 ? fmt::format("{:.3f}", value_of(row, key)) : "-";
}

std::string shown_f1(const ScoreRow& row) {
  return shown_share(row, "f1_labels", value_of(row, "truths") + value_of(row, "predictions"));
}

/// @param before  rows of the first evaluation, for a column of what it was; may be empty
std::string rows_html(const char* first, const std::vector<ScoreRow>& rows,
                      const std::vector<ScoreRow>& before) {
  if (rows.empty()) return "";
  std::vector<std::vector<std::string>> table{{first, "images", "truths", "answers", "recall",
                                               "named precision", "named recall", "named F1"}};
  if (!before.empty()) table[0].push_back("named F1 before");
  for (const ScoreRow& row : rows) {
    if (table.size() > kShownClasses) break;
    std::vector<std::string> cells{row.name};
    for (const char* key : {"images", "truths", "predictions"})
      cells.push_back(fmt::format("{:.0f}", value_of(row, key)));
    cells.push_back(shown_share(row, "recall", value_of(row, "truths")));
    cells.push_back(shown_share(row, "precision_labels", value_of(row, "predictions")));
    cells.push_back(shown_share(row, "recall_labels", value_of(row, "truths")));
    cells.push_back(shown_f1(row));
    if (!before.empty()) {
      const auto same = std::find_if(before.begin(), before.end(),
                                     [&](const ScoreRow& one) { return one.name == row.name; });
      cells.push_back(same == before.end() ? "-" : shown_f1(*same));
    }
    table.push_back(std::move(cells));
  }
  return html_table(table);
}

std::string config_html(const std::vector<RunData>& runs) {
  std::string html;
  for (const RunData& run : runs) {
    std::string text = run.effective;
    if (text.empty()) {
      for (const auto& [key, value] : run.config) text += key + ": " + value + "\n";
    }
    if (!text.empty())
      html += fmt::format("<details class=\"card\"><summary>{}</summary><pre>{}</pre></details>\n",
                          html_text(run.name), html_text(text));
  }
  return html;
}

}  // namespace

std::string report_html(const std::vector<RunData>& runs, const GalleryOptions& gallery) {
  std::string names;
  for (const RunData& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  const std::vector<NamedEvaluation> evaluations = evaluations_of(runs);
  std::string body =
      fmt::format("<h1>{}</h1><p class=\"soft\">Rematch report</p>\n", html_text(names));
  body += facts_html(runs);
  if (!evaluations.empty()) {
    const NamedEvaluation &first = evaluations.front(), &last = evaluations.back();
    const EvaluationFile* before = evaluations.size() > 1 ? first.file : nullptr;
    body += section("Scores", html_table(score_table(evaluations)) +
                                  "<p class=\"soft\">F1 pairs boxes whatever their label; label F1 "
                                  "wants the label too. COCO's scores take "
                                  "the order in the answer "
                                  "as the score. The best of a row is green.</p>");
    body +=
        section("Health of " + html_text(last.name), health_html(judge_health(*last.file, before)));
    body += section("Curves", curves_html(runs));
    body += section("Where the time went", time_split_html(runs));
    const std::vector<ScoreRow> none;
    body += section("By class",
                    rows_html("class", last.file->per_class, before ? before->per_class : none));
    body += section("By number of objects in the image",
                    rows_html("objects", last.file->per_count, before ? before->per_count : none));
    body += section("Samples of " + html_text(last.name),
                    last.file->samples_path.empty()
                        ? "<p class=\"soft\">Pictures of its answers come from <code>rematch eval "
                          "CONFIG --set model.model=CHECKPOINT</code>: "
                          "make this page again afterwards.</p>"
                        : gallery_html(*last.file, before, gallery));
  } else {
    body += section("Curves", curves_html(runs)) +
            section("Where the time went", time_split_html(runs));
  }
  body += section("Effective configuration", config_html(runs));
  return html_page("Rematch: " + names, body);
}

}  // namespace rematch
