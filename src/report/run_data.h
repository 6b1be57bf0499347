#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// A row of a table by class or by number of objects.
struct ScoreRow {
  std::string name;
  std::map<std::string, double> values;
};

/// An evaluation that `rematch eval` wrote, or the last one of a training log.
struct EvaluationFile {
  std::string name;      ///< of the checkpoint
  std::string model;     ///< its directory; may be empty
  std::string eval_set;  ///< what it was over (evaluate/eval_set.h); empty in older files
  std::map<std::string, double> scores;
  std::vector<ScoreRow> per_class, per_count;
  std::string path;          ///< of the file; empty = it comes from a log
  std::string samples_path;  ///< JSONL of truths and answers; empty = none
  bool is_stage1 = false;    ///< of a model that a run trained on the truth alone
};

/// A logged step.
struct LoggedStep {
  int64_t step = 0;
  std::map<std::string, double> values;
  std::string eval_set = {};  ///< of an evaluation
};

/// What lies in a run's directory.
struct RunData {
  std::string name, path;
  std::vector<std::string> files;     ///< what was read, and the samples of the evaluations
  std::vector<std::string> warnings;  ///< about what could not be read
  std::vector<std::pair<std::string, std::string>> config;  ///< flattened args.json: a.b.c → value
  /// effective_config.txt: values with their origins; may be empty
  std::string effective;
  std::vector<LoggedStep> log;
  /// one for each checkpoint that was evaluated; without any, the last one of the log
  std::vector<EvaluationFile> evaluations;
  /// the log's first evaluation over the same set, when `evaluations` is its last and another one
  std::optional<EvaluationFile> first_logged;

  /// Value of a configuration key, or "".
  std::string setting(const std::string& key) const;
  /// True when its configuration is known and trains on the truth alone.
  bool is_stage1() const;
};

/// Reads a run directory (logging.jsonl, args.json, eval/NAME.json, eval_results.json: whatever is
/// there), one result file, or the result file of a checkpoint (RUN_DIR/eval/checkpoint-N.json).
/// @throws UserError (environment) for a path that does not exist, (data) for one that holds
/// nothing of a run or a damaged file
RunData read_run(const std::string& path);

/// Runs under different names: the last parts of their paths, longer where these agree. A run and
/// evaluations of its checkpoints in other directories are one (merge_runs). @throws UserError as
/// read_run
std::vector<RunData> read_runs(const std::vector<std::string>& paths);

}  // namespace rematch
