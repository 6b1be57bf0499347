#pragma once
#include <string>
#include <vector>

#include "report/run_data.h"

namespace rematch {

/// A score worth comparing.
struct ScoreKind {
  const char* key;    ///< as in eval_results.json
  const char* label;  ///< for people
  int better;         ///< 1: higher is better, −1: lower, 0: neither
};

/// The scores of tables and reports, most telling first.
const std::vector<ScoreKind>& score_kinds();

/// An evaluation among several runs.
struct NamedEvaluation {
  std::string name;  ///< the run's, with the checkpoint's where a run has several
  const EvaluationFile* file = nullptr;
};

/// All evaluations of the runs, in order; of a run alone whose scores come from its log also the
/// first one. The runs outlive them.
std::vector<NamedEvaluation> evaluations_of(const std::vector<RunData>& runs);

/// True when two evaluations were over the same set, so that their scores can be compared.
bool over_same_set(const EvaluationFile& a, const EvaluationFile& b);

/// What to tell when the evaluations are over different sets: each with its own; empty when all are
/// over the same.
std::string different_sets(const std::vector<NamedEvaluation>& evaluations);

/// A table: header, then a row for each score that any evaluation has; the best value of a row is
/// marked with '*'. With two evaluations or more the last column is the last minus the first. Over
/// different sets there is neither.
std::vector<std::vector<std::string>> score_table(const std::vector<NamedEvaluation>& evaluations);

/// A score as people read it: three digits, "-" when absent or undefined (negative).
std::string shown_score(const EvaluationFile& file, const std::string& key);

/// The table as Markdown.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

/// A property of a model's answers and whether it is as it should be.
struct HealthItem {
  std::string name, value;
  bool good = true;
  std::string advice;     ///< what to do when it is not
  bool is_judged = true;  ///< false: it was zero and is, or there was nothing to measure it on
};

/// Judges the answers of an evaluation. @param before  an earlier evaluation, against which
/// forgetting shows when it is over the same set; may be null
std::vector<HealthItem> judge_health(const EvaluationFile& now, const EvaluationFile* before);

}  // namespace rematch
