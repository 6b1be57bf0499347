#include "tools/report/run_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/whole_lines.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::map<std::string, double> read_numbers(const Json& object) {
  std::map<std::string, double> values;
  for (const auto& item : object.items()) {
    if (item.value().is_number()) values[item.key()] = item.value().get<double>();
  }
  return values;
}

std::string text_or_empty(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<ScoreRow> read_rows(const Json& json, const char* key) {
  std::vector<ScoreRow> rows;
  for (const Json& row : json.value(key, Json())) {
    if (const std::string name = text_or_empty(row, "name"); !name.empty())
      rows.push_back({name, read_numbers(row)});
  }
  return rows;
}

EvaluationFile read_evaluation(const fs::path& path) {
  const Json json = parse_document(read_file(path.string()), run_file_origin(path.string()));
  if (!json.is_object())
    throw_json_error(run_file_origin(path.string()), "", "expected an object of scores");
  EvaluationFile file{.name = path.stem().string(),
                      .model = text_or_empty(json, "model"),
                      .records = text_or_empty(json, "val_jsonl"),
                      .eval_set = text_or_empty(json, "eval_set"),
                      .scores = read_numbers(json),
                      .per_class = read_rows(json, "per_class"),
                      .per_count = read_rows(json, "per_count"),
                      .path = path.string()};
  const std::vector<ScoreKind>& kinds = score_kinds();
  if (std::ranges::none_of(kinds,
                           [&](const ScoreKind& kind) { return file.scores.contains(kind.key); })) {
    throw data_error(
        {.error = "this file holds no scores of an evaluation",
         .where = path.string(),
         .what = fmt::format("none of its {} members is a score such as {}", json.size(),
                             kinds.front().key),
         .fix = "give an eval_results.json, or an eval/CHECKPOINT.json of a run (rematch eval)"});
  }
  const fs::path samples = path.parent_path() / (path.stem().string() + ".samples.jsonl");
  if (path_exists(samples)) file.samples_path = samples.string();
  return file;
}

bool is_result_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".json" && name.find(".predictions.") == std::string::npos &&
         name.find(".truth.") == std::string::npos;
}

void flatten(const Json& value, const std::string& key,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& item : value.items())
      flatten(item.value(), key.empty() ? item.key() : key + "." + item.key(), out);
  } else {
    out.emplace_back(key, value.is_string() ? value.get<std::string>() : python_json(value));
  }
}

/// Reads a logged step; nullopt for a line without one.
std::optional<LoggedStep> read_step(const Json& line) {
  if (!line.is_object() || !line.contains("step")) return std::nullopt;
  const Json& step = line["step"];
  const bool fits = step.is_number_integer() && step.get<double>() < 9e18;
  return fits ? std::optional(LoggedStep{step.get<int64_t>(), read_numbers(line),
                                         text_or_empty(line, "eval_set")})
              : std::nullopt;
}

/// Reads the whole lines of a log. A torn last line is only a warning; the trainer repairs it when
/// the run continues (make_jsonl_sink).
void read_log(const std::string& path, RunData& run) {
  const std::string content = read_file(path);
  std::string_view lines = whole_lines(content);
  const bool is_last_complete =
      content.find('\0') == std::string::npos && Json::accept(content.substr(lines.size()));
  if (is_last_complete) lines = content;  // without a line break, as an editor leaves it
  int number = 0, without_step = 0;
  for (const std::string& line : split(std::string(lines), '\n')) {
    ++number;
    if (line.empty()) continue;
    const Json json = parse_document(line, {.path = fmt::format("{}:{}", path, number),
                                            .error = "a line of this log cannot be read",
                                            .fix = "remove this line: others can be read"});
    if (std::optional<LoggedStep> step = read_step(json)) {
      run.log.push_back(*std::move(step));
    } else {
      ++without_step;
    }
  }
  if (lines.size() < content.size())
    run.warnings.push_back(fmt::format(
        "{} ends in a torn line, as a killed run leaves it: its {} whole lines are used", path,
        run.log.size()));
  if (without_step > 0)
    run.warnings.push_back(
        fmt::format("{}: lines without a step are left out: {}", path, without_step));
}

/// Every evaluation in a log.
std::vector<EvaluationFile> find_logged_evaluations(const RunData& run) {
  std::vector<EvaluationFile> files;
  for (const auto& [step, values, eval_set] : run.log) {
    if (values.count("eval_rollout_f1") > 0 || values.count("eval_loss") > 0)
      files.push_back({.name = fmt::format("step {}", step),
                       .records = run.setting("custom.val_jsonl"),
                       .eval_set = eval_set,
                       .scores = values});
  }
  return files;
}

/// Adds scores that only the log has (`eval_loss`) to evaluations of checkpoints over the same set.
void add_logged_scores(RunData& run) {
  for (const EvaluationFile& logged : find_logged_evaluations(run)) {
    for (EvaluationFile& file : run.evaluations) {
      if (file.is_of_run() && logged.name == "step " + file.name.substr(file.name.rfind('-') + 1) &&
          over_same_set(logged, file))
        file.scores.insert(logged.scores.begin(), logged.scores.end());
    }
  }
}

/// Adds the evaluation that a file holds.
void add_evaluation(const fs::path& path, RunData& run) {
  run.evaluations.push_back(read_evaluation(path));
  run.files.push_back(path.string());
  const std::string& samples = run.evaluations.back().samples_path;
  if (!samples.empty()) run.files.push_back(samples);
}

RunData read_result(const fs::path& file, const std::string& path) {
  RunData run{.name = file.stem().string(), .path = path};
  add_evaluation(file, run);
  return run;
}

/// True for a checkpoint. `rematch compare CHECKPOINT` reads the evaluation next to it.
bool is_checkpoint(const fs::path& directory) {
  return path_exists(directory / "config.json") || path_exists(directory / "adapter_config.json");
}

void read_evaluations(const fs::path& directory, RunData& run) {
  std::vector<fs::path> paths;
  if (is_dir(directory / "eval")) {
    for (const auto& entry : fs::directory_iterator(directory / "eval")) {
      if (is_result_file(entry.path())) paths.push_back(entry.path());
    }
  }
  if (paths.empty() && path_exists(directory / "eval_results.json"))
    paths.push_back(directory / "eval_results.json");
  for (const fs::path& path : paths) add_evaluation(path, run);
  // Weights that are no checkpoint of the run first, then checkpoint-20 before checkpoint-100.
  std::ranges::sort(run.evaluations, {}, [](const EvaluationFile& file) {
    return std::tuple(file.is_of_run(), file.name.size(), file.name);
  });
}

}  // namespace

JsonOrigin run_file_origin(const std::string& path) {
  return {.path = path,
          .error = "a file of this run cannot be read",
          .fix = "evaluate the checkpoint again, or remove the file"};
}

std::optional<double> EvaluationFile::score(const std::string& key) const {
  const auto found = scores.find(key);
  if (found == scores.end() || found->second < 0) return std::nullopt;
  return found->second;
}

bool EvaluationFile::is_of_run() const {
  const std::string number = name.substr(name.find_first_of("- ") + 1);
  return (name.starts_with("checkpoint-") || path.empty()) &&
         number.find_first_not_of("0123456789") == number.npos;
}

std::string RunData::setting(const std::string& key) const {
  for (const auto& [name, value] : config) {
    if (name == key) return value;
  }
  return "";
}

/// The runs in a directory of runs, sorted.
Strings runs_in(const fs::path& directory) {
  Strings runs;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (path_exists(entry->path() / "logging.jsonl") ||
        path_exists(entry->path() / "eval_results.json"))
      runs.push_back(shell_word(entry->path().string()));
  }
  std::ranges::sort(runs);
  return runs;
}

/// @throws UserError (data)
[[noreturn]] void refuse_empty(const std::string& path, const fs::path& directory,
                               const fs::path& own_result) {
  if (is_checkpoint(directory)) {
    throw data_error(
        {.error = "this checkpoint has no evaluation",
         .where = path,
         .what = own_result.string() + " does not exist",
         .fix = fmt::format("run `rematch eval {}{}", shell_word(path),
                            path_exists(own_result.parent_path().parent_path() / "args.json")
                                ? "`, over the run's custom.val_jsonl or a JSONL after it"
                                : " JSONL` and give the eval_results.json that it writes")});
  }
  const Strings runs = runs_in(directory);
  throw data_error({.error = "this directory holds no run",
                    .where = path,
                    .what = "neither logging.jsonl nor eval_results.json",
                    .fix = runs.empty() ? "give a run's directory (training.output_dir/run_name)"
                                        : "give the runs in it: " + join(runs, " ")});
}

RunData read_run(const std::string& path) {
  fs::path place = fs::path(path).lexically_normal();
  std::error_code error;  // of what is no link, as `best` and `last` are
  if (const fs::path target = fs::read_symlink(place, error); !error && !target.has_parent_path())
    place.replace_filename(target);
  if (!path_exists(place)) {
    throw missing_path(
        "run", path,
        "give a run's directory (training.output_dir/run_name) or an eval_results.json");
  }
  if (is_file(place)) return read_result(place, path);
  const fs::path directory = place.has_filename() ? place : place.parent_path();  // "runs/a/"
  const fs::path own_result =
      directory.parent_path() / "eval" / (directory.filename().string() + ".json");
  if (is_checkpoint(directory) && is_file(own_result)) return read_result(own_result, path);
  RunData run{.name = directory.filename().string(), .path = path};
  const auto find = [&](const char* name) -> std::optional<std::string> {
    std::string file = (place / name).string();
    if (!path_exists(file)) return std::nullopt;
    run.files.push_back(file);
    return file;
  };
  if (const auto log = find("logging.jsonl")) read_log(*log, run);
  if (const auto args = find("args.json"))
    flatten(parse_document(read_file(*args), run_file_origin(*args)), "", run.config);
  if (const auto effective = find("effective_config.txt")) run.effective = read_file(*effective);
  read_evaluations(place, run);
  add_logged_scores(run);
  if (run.evaluations.empty() || !run.evaluations.back().is_of_run()) {
    const std::vector<EvaluationFile> logged = find_logged_evaluations(run);
    if (!logged.empty()) run.evaluations.push_back(logged.back());
    const auto first = std::ranges::find_if(
        logged, [&](const auto& evaluation) { return over_same_set(evaluation, logged.back()); });
    if (logged.end() - first > 1) run.first_logged = *first;
  }
  if (run.log.empty() && run.evaluations.empty()) refuse_empty(path, directory, own_result);
  return run;
}

std::vector<RunData> read_runs(const Strings& paths) {
  std::vector<RunData> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::set<std::string> names;
  for (const RunData& run : runs) names.insert(run.name);
  if (names.size() == runs.size()) return runs;
  for (RunData& run : runs) run.name = fs::path(run.path).lexically_normal().string();
  return runs;
}

}  // namespace rematch
