#include "report/merge_runs.h"

#include <algorithm>
#include <filesystem>

#include "report/score_table.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

fs::path canonical_directory(const std::string& path) {
  const fs::path whole = fs::weakly_canonical(fs::absolute(path));
  return whole.has_filename() ? whole : whole.parent_path();
}

/// True when the model is a checkpoint in the run's directory. A relative path may belong to
/// another working directory; then the end of the run's path must equal it.
bool is_checkpoint_in(const std::string& model, const RunData& run) {
  const fs::path parent = fs::path(model).lexically_normal().parent_path();
  if (model.empty() || !parent.has_filename()) return false;
  const fs::path directory = canonical_directory(run.path);
  if (canonical_directory(model).parent_path() == directory) return true;
  if (parent.is_absolute() || *parent.begin() == "..") return false;
  auto part = directory.end();
  for (auto wanted = parent.end(); wanted != parent.begin();) {
    if (part == directory.begin() || *--part != *--wanted) return false;
  }
  return true;
}

/// True when the directory holds only evaluations of checkpoints of `run`.
bool holds_evaluations_of(const RunData& evaluated, const RunData& run) {
  return evaluated.log.empty() && !evaluated.evaluations.empty() && !run.log.empty() &&
         std::all_of(evaluated.evaluations.begin(), evaluated.evaluations.end(),
                     [&](const EvaluationFile& file) { return is_checkpoint_in(file.model, run); });
}

bool is_from_log(const EvaluationFile& file) { return file.path.empty(); }

/// Names an evaluation after its checkpoint and adds scores that only the log has.
void adopt(EvaluationFile& file, const RunData& run) {
  file.name = fs::path(file.model).filename().string();
  file.is_stage1 = run.is_stage1();
  for (const EvaluationFile& logged : run.evaluations) {
    const bool is_same_step =
        logged.name.starts_with("step ") && file.name == "checkpoint-" + logged.name.substr(5);
    if (is_from_log(logged) && is_same_step && over_same_set(logged, file))
      file.scores.insert(logged.scores.begin(), logged.scores.end());
  }
}

/// Moves the evaluations into the run.
void merge_into(RunData& run, RunData evaluated) {
  for (EvaluationFile& file : evaluated.evaluations) adopt(file, run);
  const auto is_replaced = [&](const EvaluationFile& old) {
    return is_from_log(old) ||
           std::any_of(evaluated.evaluations.begin(), evaluated.evaluations.end(),
                       [&](const EvaluationFile& file) {
                         return !old.model.empty() && !file.model.empty() &&
                                canonical_directory(old.model) == canonical_directory(file.model) &&
                                over_same_set(old, file);
                       });
  };
  std::erase_if(run.evaluations, is_replaced);
  for (EvaluationFile& file : evaluated.evaluations) run.evaluations.push_back(std::move(file));
  if (run.first_logged && !over_same_set(*run.first_logged, run.evaluations.back()))
    run.first_logged.reset();
  run.files.insert(run.files.end(), evaluated.files.begin(), evaluated.files.end());
}

}  // namespace

std::vector<RunData> merge_runs(std::vector<RunData> runs) {
  for (size_t i = 0; i < runs.size();) {
    const auto found = std::find_if(runs.begin(), runs.end(), [&](const RunData& run) {
      return holds_evaluations_of(runs[i], run);
    });
    if (found == runs.end()) {
      ++i;
      continue;
    }
    const auto at = static_cast<size_t>(found - runs.begin());
    const size_t first = std::min(i, at), last = std::max(i, at);
    merge_into(*found, std::move(runs[i]));
    RunData merged = std::move(*found);
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(last));
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(first));
    const size_t place = first == 0 ? 0 : last - 1;
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(place), std::move(merged));
    i = first;  // later runs moved up
  }
  return runs;
}

}  // namespace rematch
