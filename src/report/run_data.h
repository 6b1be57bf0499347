#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// A row of a table by class or by number of objects.
struct ScoreRow {
  std::string name;
  std::map<std::string, double> values;
};

/// An evaluation that `rematch eval` wrote, or the last one of a training log.
struct EvaluationFile {
  std::string name;   ///< of the checkpoint
  std::string model;  ///< its directory; may be empty
  std::map<std::string, double> scores;
  std::vector<ScoreRow> per_class, per_count;
  std::string samples_path;  ///< JSONL of truths and answers; empty = none
};

/// A logged step.
struct LoggedStep {
  int64_t step = 0;
  std::map<std::string, double> values;
};

/// What lies in a run's directory.
struct RunData {
  std::string name, path;
  std::vector<std::pair<std::string, std::string>> config;  ///< flattened args.json: a.b.c → value
  /// effective_config.txt: values with their origins; may be empty
  std::string effective;
  std::vector<LoggedStep> log;
  /// one for each checkpoint that was evaluated; without any, the last one of the log
  std::vector<EvaluationFile> evaluations;
  /// the log's first evaluation, when `evaluations` is its last and another one
  std::optional<EvaluationFile> first_logged;

  /// Value of a configuration key, or "".
  std::string setting(const std::string& key) const;
};

/// Reads a run directory (logging.jsonl, args.json, eval/NAME.json, eval_results.json: whatever is
/// there) or one result file.
/// @throws UserError (environment) for a path that does not exist, (data) for one that holds
/// nothing of a run or a damaged file
RunData read_run(const std::string& path);

/// Runs under different names: the last parts of their paths, longer where these agree. @throws
/// UserError as read_run
std::vector<RunData> read_runs(const std::vector<std::string>& paths);

/// An evaluated sample, as NAME.samples.jsonl has it.
struct JudgedSample {
  int64_t sample_id = 0;
  std::string image_path;
  std::vector<SceneObject> truth, predictions;
  std::vector<std::pair<int, int>> pairs;  ///< (prediction, truth)
  std::vector<bool> named_right;           ///< of each pair
  std::string status;

  /// 2 · pairs named right / (truths + predictions); 1 for an empty scene that was answered as
  /// empty.
  double f1_labels() const;
};

/// @throws UserError (data) when a line is damaged, (environment) when the file cannot be read
std::vector<JudgedSample> read_judged_samples(const std::string& path);

/// The sample of the same image, such as that of another evaluation; null when there is none.
const JudgedSample* find_same_image(const std::vector<JudgedSample>& samples,
                                    const JudgedSample& like);

/// At most `count` indices below `total`, evenly spaced.
std::vector<size_t> evenly_spaced(size_t total, int count);

}  // namespace rematch
