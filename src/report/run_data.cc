#include "report/run_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "report/score_table.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

JsonOrigin origin_of(const std::string& path) {
  return {.path = path,
          .error = "a file of this run cannot be read",
          .fix = "evaluate the checkpoint again, or remove the file"};
}

std::map<std::string, double> numbers_of(const Json& object) {
  std::map<std::string, double> values;
  for (const auto& item : object.items()) {
    if (item.value().is_number()) values[item.key()] = item.value().get<double>();
  }
  return values;
}

std::vector<ScoreRow> rows_of(const Json& json, const char* key) {
  std::vector<ScoreRow> rows;
  if (!json.contains(key)) return rows;
  for (const Json& row : json[key]) {
    if (row.is_object() && row.contains("name"))
      rows.push_back({row["name"].get<std::string>(), numbers_of(row)});
  }
  return rows;
}

EvaluationFile read_evaluation(const fs::path& path) {
  const Json json = parse_document(read_file(path.string()), origin_of(path.string()));
  if (!json.is_object())
    throw_json_error(origin_of(path.string()), "", "expected an object of scores");
  EvaluationFile file{.name = path.stem().string(),
                      .scores = numbers_of(json),
                      .per_class = rows_of(json, "per_class"),
                      .per_count = rows_of(json, "per_count")};
  const std::vector<ScoreKind>& kinds = score_kinds();
  if (std::none_of(kinds.begin(), kinds.end(),
                   [&](const ScoreKind& kind) { return file.scores.contains(kind.key); })) {
    throw UserError(
        ErrorKind::kData,
        {.error = "this file holds no scores of an evaluation",
         .where = path.string(),
         .what = fmt::format("none of its {} members is a score such as {}", json.size(),
                             kinds.front().key),
         .fix = "give an eval_results.json, or an eval/CHECKPOINT.json of a run (rematch eval)"});
  }
  if (json.contains("model") && json["model"].is_string())
    file.model = json["model"].get<std::string>();
  const fs::path samples = path.parent_path() / (path.stem().string() + ".samples.jsonl");
  if (fs::exists(samples)) file.samples_path = samples.string();
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

std::vector<LoggedStep> read_log(const std::string& path) {
  std::vector<LoggedStep> steps;
  int number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    ++number;
    if (line.empty()) continue;
    const Json json = parse_document(line, origin_of(fmt::format("{}:{}", path, number)));
    if (!json.is_object() || !json.contains("step")) continue;
    steps.push_back({json["step"].get<int64_t>(), numbers_of(json)});
  }
  return steps;
}

/// Every evaluation in a log.
std::vector<EvaluationFile> logged_evaluations(const std::vector<LoggedStep>& log) {
  std::vector<EvaluationFile> files;
  for (const auto& [step, values] : log) {
    if (values.count("eval_rollout_f1") > 0 || values.count("eval_loss") > 0)
      files.push_back({.name = fmt::format("step {}", step), .scores = values});
  }
  return files;
}

std::vector<EvaluationFile> evaluations_in(const fs::path& directory) {
  std::vector<fs::path> paths;
  if (fs::is_directory(directory / "eval")) {
    for (const auto& entry : fs::directory_iterator(directory / "eval")) {
      if (is_result_file(entry.path())) paths.push_back(entry.path());
    }
  }
  if (paths.empty() && fs::exists(directory / "eval_results.json"))
    paths.push_back(directory / "eval_results.json");
  // checkpoint-20 before checkpoint-100.
  const auto rank = [](const fs::path& path) {
    return std::pair(path.string().size(), path.string());
  };
  std::sort(paths.begin(), paths.end(),
            [&](const fs::path& a, const fs::path& b) { return rank(a) < rank(b); });
  std::vector<EvaluationFile> files;
  for (const fs::path& path : paths) files.push_back(read_evaluation(path));
  return files;
}

std::vector<SceneObject> objects_of(const Json& list, const JsonOrigin& origin) {
  std::vector<SceneObject> objects;
  for (const Json& entry : list) {
    const GeometryKind kind =
        entry.contains("bbox_2d") ? GeometryKind::kBbox2d : GeometryKind::kPoly;
    objects.push_back({entry.at("desc").get<std::string>(),
                       {kind, entry.at(geometry_key(kind)).get<std::vector<int>>()}});
    const size_t num_bins = objects.back().geometry.bins.size();
    if (kind == GeometryKind::kBbox2d ? num_bins != 4 : num_bins < 6 || num_bins % 2 != 0)
      throw_json_error(origin, "", fmt::format("{} numbers in {}", num_bins, geometry_key(kind)));
  }
  return objects;
}

}  // namespace

std::string RunData::setting(const std::string& key) const {
  for (const auto& [name, value] : config) {
    if (name == key) return value;
  }
  return "";
}

RunData read_run(const std::string& path) {
  const fs::path place = fs::path(path).lexically_normal();
  if (!fs::exists(place)) {
    throw UserError(
        ErrorKind::kEnvironment,
        {.error = "there is no such run",
         .where = path,
         .what = "neither a directory nor a file",
         .fix = "give a run's directory (training.output_dir/run_name) or an eval_results.json"});
  }
  RunData run{.name = place.has_filename() ? place.stem().string()
                                           : place.parent_path().filename().string(),
              .path = path};
  if (fs::is_regular_file(place)) {
    run.evaluations.push_back(read_evaluation(place));
    return run;
  }
  if (place.has_filename()) run.name = place.filename().string();
  if (fs::exists(place / "logging.jsonl")) run.log = read_log((place / "logging.jsonl").string());
  if (fs::exists(place / "args.json")) {
    const std::string args = (place / "args.json").string();
    flatten(parse_document(read_file(args), origin_of(args)), "", run.config);
  }
  if (fs::exists(place / "effective_config.txt"))
    run.effective = read_file((place / "effective_config.txt").string());
  run.evaluations = evaluations_in(place);
  if (run.evaluations.empty()) {
    const std::vector<EvaluationFile> logged = logged_evaluations(run.log);
    if (!logged.empty()) run.evaluations.push_back(logged.back());
    if (logged.size() > 1) run.first_logged = logged.front();
  }
  if (run.log.empty() && run.evaluations.empty()) {
    throw UserError(ErrorKind::kData,
                    {.error = "this directory holds no run",
                     .where = path,
                     .what = "neither logging.jsonl nor eval_results.json",
                     .fix = "give a run's directory (training.output_dir/run_name)"});
  }
  return run;
}

std::vector<RunData> read_runs(const std::vector<std::string>& paths) {
  std::vector<RunData> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  std::set<std::string> names;
  for (const RunData& run : runs) names.insert(run.name);
  if (names.size() == runs.size()) return runs;
  for (RunData& run : runs) run.name = fs::path(run.path).lexically_normal().string();
  return runs;
}

double JudgedSample::f1_labels() const {
  const size_t whole = truth.size() + predictions.size();
  const auto right = static_cast<double>(std::count(named_right.begin(), named_right.end(), true));
  return whole == 0 ? 1.0 : 2 * right / static_cast<double>(whole);
}

std::vector<JudgedSample> read_judged_samples(const std::string& path) {
  std::vector<JudgedSample> samples;
  int number = 0;
  for (const std::string& line : split(read_file(path), '\n')) {
    ++number;
    if (line.empty()) continue;
    const JsonOrigin origin = origin_of(fmt::format("{}:{}", path, number));
    const Json json = parse_document(line, origin);
    try {
      JudgedSample sample{.sample_id = json.at("sample_id").get<int64_t>(),
                          .image_path = json.at("images").at(0).get<std::string>(),
                          .truth = objects_of(json.at("ground_truth"), origin),
                          .predictions = objects_of(json.at("predictions"), origin),
                          .pairs = json.at("pairs").get<std::vector<std::pair<int, int>>>(),
                          .named_right = json.at("named_right").get<std::vector<bool>>(),
                          .status = json.at("status").get<std::string>()};
      const auto is_index = [](int index, const auto& list) {
        return index >= 0 && static_cast<size_t>(index) < list.size();
      };
      for (const auto& [p, t] : sample.pairs) {
        if (!is_index(p, sample.predictions) || !is_index(t, sample.truth))
          throw_json_error(origin, "pairs", fmt::format("no objects {} and {}", p, t));
      }
      if (sample.named_right.size() != sample.pairs.size())
        throw_json_error(origin, "named_right", "expected one value for each pair");
      samples.push_back(std::move(sample));
    } catch (const nlohmann::json::exception& error) {
      throw_json_error(origin, "", error.what());
    }
  }
  return samples;
}

const JudgedSample* find_same_image(const std::vector<JudgedSample>& samples,
                                    const JudgedSample& like) {
  const auto found = std::find_if(samples.begin(), samples.end(), [&](const JudgedSample& one) {
    return one.sample_id == like.sample_id && one.image_path == like.image_path;
  });
  return found == samples.end() ? nullptr : &*found;
}

std::vector<size_t> evenly_spaced(size_t total, int count) {
  const size_t num_chosen = std::min(total, static_cast<size_t>(count));
  std::vector<size_t> chosen;
  for (size_t k = 0; k < num_chosen; ++k) chosen.push_back(k * total / num_chosen);
  return chosen;
}

}  // namespace rematch
