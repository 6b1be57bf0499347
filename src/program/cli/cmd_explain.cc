// `rematch explain KEY`: what a key, a metric or a printed word means.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/cli/command_set.h"
#include "program/config/explain.h"
#include "program/config/suggest.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

/// A word that `rematch probe` or a table of scores prints.
struct PrintedWord {
  const char* names;  ///< separated by "|", as normal_form() gives them
  const char* where;
  const char* meaning;
};

constexpr const char *kProbe = "rematch probe", *kScores = "scores", *kTerm = "term";

constexpr PrintedWord kWords[] = {
    // Numbers of the probe.
    {"neighbours in sorted order|neighbours in the sorted order|neighbours|neighbors", kProbe,
     "share of neighbouring objects of an answer that follow each other from top to bottom and "
     "left to right, as sorted truths do; 0.5 is chance, from 0.8 on the model has learnt the "
     "order"},
    {"missing objects|missing", kProbe, "share of the true objects that the answers do not find"},
    {"of these found by samples|found by N samples|found by samples", kProbe,
     "share of the missing objects that at least one of several answers with random choices "
     "(--samples) does find: what stage 2 can teach"},
    {"repeated", kProbe, "share of the predictions that name an object a second time"},
    {"objects", kProbe, "images by their number of true objects"},
    // Scores.
    {"fN|fN@.N|fN @ .N", kScores,
     "harmonic mean of precision and recall of the boxes, whatever their label: a box is right "
     "when its IoU with a true one is at least the number after @, 0.5 without one "
     "(eval_rollout_f1_iou50); `gate F1` counts from maskiou_gate on (eval_rollout_f1)"},
    {"label fN|label fN@.N|label fN @ .N", kScores,
     "F1 of boxes that have the right label too (eval_rollout_f1_labels_iou50)"},
    {"gate p", kScores,
     "precision: share of the predictions whose IoU with a true box is at least maskiou_gate "
     "(eval_rollout_precision)"},
    {"gate r", kScores,
     "recall: share of the true boxes that a prediction meets with an IoU of at least "
     "maskiou_gate (eval_rollout_recall)"},
    {"map|ap|mapN", kScores,
     "mean average precision of the boxes by COCO's rules, over IoU 0.5 to 0.95 (coco_ap); at IoU "
     "0.5: coco_ap50"},
    {"malformed", kScores,
     "answers that are not the list of objects that they should be; one that breaks off is "
     "truncated (eval_rollout_parse_malformed_rate)"},
    {"score|conf|confidence|threshold", kScores,
     "share of boxes with such an answer that are right, 0 to 1, by the checkpoint's calibration; "
     "`predict --min-score` leaves out what is below"},
    {"calibration|calibrated", kScores,
     "turns the probability of an answer's tokens into the share of such boxes that are right; "
     "`rematch eval` measures it on the validation set and stores it with the checkpoint"},
    {"confusion|confusions|confusion matrix", kScores,
     "how often boxes of one class are found under the name of another (`rematch report`)"},
    // Words of the pages.
    {"probe", kTerm,
     "`rematch probe CHECKPOINT JSONL` measures whether stage 2 can help (docs/probe.md)"},
    {"split", kTerm,
     "part of the records: `rematch data split` makes train and validation files that share no "
     "picture; `rollout --split` chooses one"},
    {"nms", kTerm,
     "removal of boxes that overlap a better one: not needed, as an answer is one list; "
     "`duplicates` counts what is written twice"},
    {"stage N", kTerm,
     "stage 1 is supervised fine-tuning on the true answers (custom.trainer_variant: sft); stage 2 "
     "rolls out, matches and teaches the corrected answer (rollout_matching_sft, docs/stage2.md)"},
    {"tok/s|tokens/s|tokens per second", kTerm,
     "tokens of answers that are generated in a second, all samples together"},
    {"append", kTerm,
     "custom.extra.rollout_matching.target_policy: the answer is kept up to its last whole object, "
     "and the missing objects follow; `rewrite` teaches the whole true answer (docs/targets.md)"},
};

/// Lower case, with N for every number.
std::string normal_form(const std::string& word) {
  std::string text;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isdigit(byte) == 0)
      text += static_cast<char>(std::tolower(byte));
    else if (text.empty() || text.back() != 'N')
      text += 'N';
  }
  return text;
}

/// Text about a printed word, or "".
std::string explain_printed_word(const std::string& word) {
  const std::string wanted = normal_form(word);
  for (const PrintedWord& row : kWords) {
    const std::vector<std::string> names = split(row.names, '|');
    if (std::find(names.begin(), names.end(), wanted) != names.end())
      return fmt::format("{} ({})\n  {}\n", word, row.where, row.meaning);
  }
  return "";
}

/// Text about a metric's name, or "".
std::string explain_metric(const std::string& name) {
  std::string text;
  for (const MetricRow& row : metric_table()) {
    const bool is_named = name == row.name || std::string_view(row.name).ends_with("/" + name);
    if (is_named)
      text += fmt::format("{} (metric)\n  unit {}\n  {}\n", row.name, row.unit, row.meaning);
  }
  return text;
}

/// Text about the metrics behind a score as `eval` and `compare` print it, e.g. "malformed
/// answers"; or "".
std::string explain_score(const std::string& label) {
  constexpr std::string_view kRollout = "eval_rollout_";
  for (const ScoreKind& kind : score_kinds()) {
    if (lower_case(kind.label) != lower_case(label)) continue;
    const std::string key = kind.key, base = key.substr(0, key.find("_iou50"));
    if (!base.starts_with(kRollout)) return explain_metric(key);
    return explain_metric("rollout/" + base.substr(kRollout.size())) + explain_metric(base);
  }
  return "";
}

/// Text about the names that a search finds, or "".
std::string explain_words(const std::string& query) {
  constexpr size_t kMostFound = 8;
  const std::vector<FoundName> found = search_names(query);
  std::string text;
  for (size_t i = 0; i < found.size() && i < kMostFound; ++i)
    text += fmt::format("{}{}\n  {}\n", found[i].name, found[i].is_metric ? " (metric)" : "",
                        found[i].meaning);
  if (found.size() > kMostFound)
    text += fmt::format("… {} more mention it\n", found.size() - kMostFound);
  return text;
}

int run_explain(const std::vector<std::string>& words) {
  const std::string name = join(words, " "), low = lower_case(name);
  const KnownName* known = find_known_key(name);
  const std::string foreign =
      known == nullptr ? "" : fmt::format("{}: {}\n", name, known_fix(*known));
  std::string text;
  for (const std::string& part :
       {explain_printed_word(name), explain_metric(low), explain_score(name), explain_key(name),
        foreign, known == nullptr ? "" : explain_key(known->ours)})
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  if (text.empty()) text = explain_words(name);
  if (text.empty()) {
    const size_t dot = name.rfind('.');
    const std::vector<std::string> near =
        suggest_keys(dot == std::string::npos ? "" : name.substr(0, dot), name.substr(dot + 1));
    throw UserError(ErrorKind::kConfig,
                    {.error = "unknown key or metric",
                     .where = "rematch explain",
                     .what = printable(name),
                     .fix = near.empty() ? "try a word such as batch, epochs or mAP; "
                                           "docs/config.md and docs/metrics.md list all names"
                                         : "did you mean " + join(near, ", ") + "?"});
  }
  std::cout << wrapped(text, 2);
  return 0;
}

}  // namespace

Command add_explain_command(CLI::App& app) {
  CLI::App* explain = app.add_subcommand(
      "explain", "print what a configuration key, a metric or a word of a table means");
  const auto words = std::make_shared<std::vector<std::string>>();
  explain
      ->add_option(
          "KEY", *words,
          "a key, a section or a metric, or the end of its name; a word that a table prints; else "
          "words to search for")
      ->required();
  add_examples(*explain,
               {"training.learning_rate", "target_policy", "found by 8 samples", "batch size"});
  return {explain, [words] { return run_explain(*words); }};
}

}  // namespace rematch
