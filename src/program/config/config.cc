#include "program/config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "program/config/rules.h"
#include "program/config/run_dir.h"
#include "program/config/source.h"

namespace rematch {
namespace {

std::vector<TrainFile> to_train_files(const Json& value) {
  if (value.is_string()) return {{.path = value.get<std::string>()}};
  std::vector<TrainFile> files;
  for (const Json& item : value) {
    if (item.is_string())
      files.push_back({.path = item.get<std::string>()});
    else
      files.push_back(
          {.path = item["path"].get<std::string>(), .weight = item["weight"].get<double>()});
  }
  return files;
}

KeyValue to_key_value(const KeySpec& spec, const Json& value) {
  if (value.is_null()) return {};
  switch (spec.type) {
    case KeyType::kBool: return value.get<bool>();
    case KeyType::kSwitch:
      if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
      return value.get<std::string>();
    case KeyType::kInteger: return value.get<int64_t>();
    case KeyType::kNumber: return value.get<double>();
    case KeyType::kStringList: return value.get<std::vector<std::string>>();
    case KeyType::kFiles: return to_train_files(value);
    default: return value.get<std::string>();
  }
}

Settings fill_settings(const Draft& config) {
  Settings settings;
  for (const KeySpec& spec : schema()) {
    if (spec.fill && spec.only_in.value_or(config.variant()) == config.variant())
      spec.fill(settings, to_key_value(spec, config.json(spec.path)));
  }
  settings.rollouts = config.has_rollout_section();
  return settings;
}

/// Fills the values that depend on other settings and on the disk.
void resolve(Settings& settings, Values& values) {
  std::optional<std::string>& resume = settings.checkpoints.resume_from_checkpoint;
  if (resume == "true") resume = "latest";  // transformers' spelling
  settings.generation.top_k = std::max(0, settings.generation.top_k);
  OutputSettings& output = settings.output;
  output.run_dir = run_directory(output, resume == "latest");
  if (values.is_null("training.logging_dir"))
    values.derive("training.logging_dir", output.run_dir + "/runs", "the run directory");
  output.logging_dir = values.text("training.logging_dir");
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : python_json(value);
}

std::vector<EffectiveValue> list_effective_values(const Values& values) {
  std::vector<EffectiveValue> rows;
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    const Json& value = values.json(spec.path);
    const std::string null = spec.null_words.empty() ? "null" : spec.null_words.front();
    rows.push_back(
        {spec.path, value.is_null() ? null : value_text(value), values.origin(spec.path)});
  }
  return rows;
}

}  // namespace

ConfigResult load_config(const std::string& path, const std::vector<std::string>& overrides,
                         int world_size, const Settings& base) {
  std::vector<Problem> problems;
  const Source source = load_source(path, overrides, problems);
  const bool readable = problems.empty();
  CheckResult checked = check_keys(source.root, problems, base);
  Draft draft{checked.values, source.root,      path,         world_size,
              problems,       checked.warnings, base.rollouts};
  // Keys of an unreadable file would be reported as missing.
  if (readable) apply_rules(draft);
  if (!problems.empty()) throw UserError(ErrorKind::kConfig, std::move(problems));

  ConfigResult result;
  result.settings = fill_settings(draft);
  auto values = std::make_shared<Values>(draft);
  resolve(result.settings, *values);
  result.warnings = std::move(checked.warnings);
  result.effective = list_effective_values(*values);
  result.files = source.files;
  result.values = std::move(values);
  return result;
}

}  // namespace rematch
