#include "program/config/config.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/file.h"
#include "learn/resume/checkpoint_list.h"
#include "program/config/source.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// A `vN-…` directory; `number` is N, or -1 for other names.
struct Version {
  int number = -1;
  std::string path;
};

Version parse_version(const fs::path& path) {
  static const std::regex kName("v([0-9]{1,6})-.*");
  const std::string name = path.filename().string();
  std::smatch parts;
  return std::regex_match(name, parts, kName) ? Version{std::stoi(parts[1]), path.string()}
                                              : Version{};
}

std::string append_run_name(const std::string& path, const std::optional<std::string>& run_name) {
  return run_name && !run_name->empty() ? join_path(path, *run_name) : path;
}

Settings fill_settings(const Draft& config) {
  Settings settings;
  for (const KeySpec& spec : schema()) {
    if (spec.fill && spec.only_in.value_or(config.variant()) == config.variant())
      spec.fill(settings, config.value(spec.path));
  }
  settings.rollouts = config.has_rollout_section();
  return settings;
}

/// Fills the values that depend on other settings and on the disk.
void resolve(Settings& settings, Draft& values) {
  std::optional<std::string>& resume = settings.checkpoints.resume_from_checkpoint;
  if (resume == "true") resume = "latest";  // transformers' spelling
  settings.generation.top_k = std::max(0, settings.generation.top_k);
  OutputSettings& output = settings.output;
  output.run_dir = run_directory(output, resume == "latest");
  if (values.is_null("training.logging_dir"))
    values.derive("training.logging_dir", output.run_dir + "/runs", "the run directory");
  output.logging_dir = values.text("training.logging_dir");
}

std::vector<EffectiveValue> list_effective_values(const Draft& config) {
  std::vector<EffectiveValue> rows;
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    const KeyValue& value = config.value(spec.path);
    const Json json = to_json(value);
    const std::string null = spec.null_words.empty() ? "null" : spec.null_words.front();
    rows.push_back({spec.path, value,
                    json.is_null()     ? null
                    : json.is_string() ? json.get<std::string>()
                                       : python_json(json),
                    config.origin(spec.path)});
  }
  return rows;
}

}  // namespace

std::string run_directory(const OutputSettings& output, bool resumes_latest) {
  if (!output.add_version) return append_run_name(output.output_dir, output.run_name);
  int next = 0;
  Version newest;
  std::error_code error;
  for (fs::directory_iterator entry(output.output_dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const Version version = parse_version(entry->path());
    next = std::max(next, version.number + 1);
    if (version.number > newest.number &&
        !list_checkpoints(append_run_name(version.path, output.run_name)).empty())
      newest = version;
  }
  if (resumes_latest && newest.number >= 0) return append_run_name(newest.path, output.run_name);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return append_run_name(
      join_path(output.output_dir, fmt::format("v{}-{:%Y%m%d-%H%M%S}", next, local)),
      output.run_name);
}

bool names_configuration(const std::string& path) {
  return is_file(path) || path.ends_with(".yaml") || path.ends_with(".yml");
}

ConfigResult load_config(const std::string& path, const Strings& overrides, int world_size,
                         const Settings& base) {
  Draft draft(base);
  draft.path = path;
  draft.world_size = world_size;
  Source source = load_source(path, overrides, draft.problems);
  draft.root = std::move(source.root);
  const bool readable = draft.problems.empty();
  check_keys(draft);
  // Keys of an unreadable file would be reported as missing.
  if (readable) apply_rules(draft);
  if (!draft.problems.empty()) throw UserError(ErrorKind::kConfig, std::move(draft.problems));

  ConfigResult result{.settings = fill_settings(draft), .files = std::move(source.files)};
  resolve(result.settings, draft);
  result.warnings = std::move(draft.warnings);
  result.effective = list_effective_values(draft);
  return result;
}

}  // namespace rematch
