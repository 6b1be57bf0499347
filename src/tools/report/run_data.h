#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

/// A row of a table by class or by number of objects.
struct ScoreRow {
  std::string name;
  std::map<std::string, double> values;

  double value(const std::string& key, double absent = 0) const {
    const auto found = values.find(key);
    return found == values.end() ? absent : found->second;
  }
};

/// An evaluation that `rematch eval` wrote, or the last one of a training log.
struct EvaluationFile {
  std::string name;      ///< name of the checkpoint
  std::string model;     ///< its directory; may be empty
  std::string records;   ///< the evaluated JSONL; may be empty
  std::string eval_set;  ///< the evaluated set (learn/evaluate/eval_set.h); empty in older files
  std::map<std::string, double> scores;
  std::vector<ScoreRow> per_class, per_count;
  std::string path;          ///< empty for an evaluation from a log
  std::string samples_path;  ///< JSONL of truths and answers; empty = none

  /// A score by its name; nullopt when it is absent or undefined (negative).
  std::optional<double> score(const std::string& key) const;
  /// False for an evaluation of weights that are no checkpoint of the run, by its name.
  bool is_of_run() const;
};

/// A logged step.
struct LoggedStep {
  int64_t step = 0;
  std::map<std::string, double> values;
  std::string eval_set = {};  ///< set of an evaluation
};

/// Contents of a run's directory.
struct RunData {
  std::string name, path;
  Strings files;     ///< files that were read, and the samples of the evaluations
  Strings warnings;  ///< about unreadable parts
  std::vector<std::pair<std::string, std::string>> config;  ///< flattened args.json: a.b.c → value
  /// effective_config.txt: values with their origins; may be empty
  std::string effective;
  std::vector<LoggedStep> log;
  /// one for each evaluated checkpoint; if there is none, the last one of the log
  std::vector<EvaluationFile> evaluations;
  /// the log's first evaluation over the same set, when `evaluations` has only its last one
  std::optional<EvaluationFile> first_logged;

  /// Value of a configuration key, or "".
  std::string setting(const std::string& key) const;
};

/// Error texts for a file of a run.
JsonOrigin run_file_origin(const std::string& path);

/// Reads a run directory (of logging.jsonl, args.json, eval/NAME.json and eval_results.json those
/// that exist), one result file, or the result file of a checkpoint
/// (RUN_DIR/eval/checkpoint-N.json).
/// @throws UserError (environment) for a path that does not exist, (data) for one without a run or
/// with a damaged file
RunData read_run(const std::string& path);

/// Reads runs and gives them distinct names: the last parts of their paths, or whole paths.
/// @throws UserError as read_run
std::vector<RunData> read_runs(const Strings& paths);

}  // namespace rematch
