#pragma once
#include <optional>
#include <string>
#include <vector>

#include "learn/evaluate/name_collapse.h"
#include "tools/report/run_data.h"

namespace rematch {

/// A score of tables and reports.
struct ScoreKind {
  const char* key;    ///< as in eval_results.json
  const char* label;  ///< displayed name
  int better;         ///< 1: higher is better, −1: lower, 0: neither
};

/// All such scores, most important first.
const std::vector<ScoreKind>& score_kinds();

/// An evaluation among several runs.
struct NamedEvaluation {
  std::string name;  ///< name of the run, and of the checkpoint if the run has several
  const EvaluationFile* file = nullptr;
};

/// Lists all evaluations of the runs, in order. For a single run with scores from its log, the
/// first evaluation too. The runs must outlive the result.
std::vector<NamedEvaluation> list_evaluations(const std::vector<RunData>& runs);

/// True when two evaluations were over the same set, so that their scores can be compared.
bool over_same_set(const EvaluationFile& a, const EvaluationFile& b);

/// The first evaluation over the set of the last one, its baseline; null without one.
const NamedEvaluation* find_baseline(const std::vector<NamedEvaluation>& evaluations);

/// A message that lists the sets of the evaluations and says which are compared; empty when all are
/// over the same set.
std::string different_sets(const std::vector<NamedEvaluation>& evaluations);

/// A table with a header and one line for each score of any evaluation. '*' marks the best value
/// among those over the set of the last one, and the last column is the last minus its baseline.
std::vector<Strings> score_table(const std::vector<NamedEvaluation>& evaluations);

/// Formats a score with three digits; "-" when absent or undefined (negative).
std::string shown_score(const EvaluationFile& file, const std::string& key);

/// Formats a table as Markdown.
std::string markdown_table(const std::vector<Strings>& rows);

/// The name that stands for many in the answers of an evaluation, from its rows of classes.
std::optional<NameCollapse> collapse_in(const EvaluationFile& evaluation);

}  // namespace rematch
