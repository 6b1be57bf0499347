#include "cli/model_config.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assembly/adapter_setup.h"
#include "assembly/session.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/path_from.h"
#include "checkpoint/model_dir.h"
#include "checkpoint/peft.h"
#include "cli/eval_files.h"
#include "estep/answer/answer_format.h"
#include "model/adapter.h"
#include "resume/run_links.h"
#include "text/stored_prompt.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// `--set` of a text. A JSON string is a double-quoted scalar of YAML.
std::string set_text(const std::string& key, const std::string& text) {
  return key + "=" + python_json_string(text);
}

/// The run that a checkpoint belongs to; empty for any other directory.
fs::path run_of(const std::string& directory) {
  const fs::path run = (fs::path(directory) / "").lexically_normal().parent_path().parent_path();
  std::error_code error;
  return !run.empty() && fs::is_regular_file(run / "args.json", error) ? run : fs::path();
}

/// `custom.val_jsonl` of the run of a checkpoint; "" without.
std::string run_records(const std::string& directory) {
  const fs::path run = run_of(directory);
  if (run.empty()) return "";
  const std::string path = (run / "args.json").string();
  const Json saved = parse_json(read_file(path), path);
  if (!saved.is_object()) return "";
  const Json records = saved.value(Json::json_pointer("/custom/val_jsonl"), Json());
  return records.is_string() ? records.get<std::string>() : "";
}

/// @param asked_dir  the model, or the adapter on top of it
std::vector<std::string> settings_for(const std::string& model_dir, const std::string& asked_dir,
                                      const std::string& records) {
  // Results of a run's checkpoint belong to the run.
  const fs::path run = run_of(asked_dir);
  std::string place = "output", name = name_of_evaluated(asked_dir);
  if (!run.empty()) {
    place = run.has_parent_path() ? run.parent_path().string() : ".";
    name = run.filename().string();
  }
  std::vector<std::string> settings{set_text("model.model", model_dir),
                                    "custom.trainer_variant=rollout_matching_sft",
                                    set_text("custom.train_jsonl", records),
                                    set_text("custom.val_jsonl", records),
                                    "custom.extra.rollout_matching.rollout_backend=native",
                                    set_text("training.output_dir", place),
                                    set_text("training.run_name", name)};
  const std::string length = "custom.extra.rollout_matching.max_new_tokens=";
  const std::optional<StoredPrompt> stored = read_stored_prompt(asked_dir);
  settings.push_back(length + std::to_string(stored ? stored->max_new_tokens : 1024));
  if (!stored) return settings;
  settings.push_back(std::string("template.image_backend=") + name_of(stored->image_backend));
  if (stored->texts.user_prompt)
    settings.push_back(set_text("custom.user_prompt", *stored->texts.user_prompt));
  if (stored->texts.system_prompt)
    settings.push_back(set_text("template.system", *stored->texts.system_prompt));
  return settings;
}

/// Settings of a model, adapter or run directory; fills in which it is.
std::vector<std::string> directory_settings(const RunArguments& arguments, AskedModel& asked) {
  const NamedModel named = find_model(arguments.config_path);
  const std::string records =
      arguments.records.empty() ? run_records(named.path) : arguments.records;
  if (records.empty()) {
    throw UserError(ErrorKind::kConfig,
                    {.error = "a model directory needs records to be asked about",
                     .where = arguments.config_path,
                     .what = "no JSONL was given after it",
                     .fix = "give the records too, as in `rematch eval MODEL data/val.jsonl`, or a "
                            "YAML configuration"});
  }
  asked.path = named.path;
  asked.note = named.note;
  asked.is_named = true;
  asked.is_adapter = is_adapter_dir(named.path);
  const std::string base =
      asked.is_adapter ? named_base_model(read_peft_adapter(named.path), named.path) : named.path;
  return settings_for(base, named.path, records);
}

}  // namespace

void require_model_first(const std::string& model, const std::string& records) {
  if (!fs::is_regular_file(model) || !fs::is_directory(records)) return;
  throw UserError(ErrorKind::kConfig,
                  {.error = "the model comes before the records",
                   .where = model + " " + records,
                   .what = model + " is a file, and " + records + " a directory",
                   .fix = "change their order: " + records + " " + model});
}

void AskedModel::load_adapter(const Session& session) const {
  if (!is_adapter) return;
  if (session.settings.backend == "vllm") {
    throw UserError(ErrorKind::kConfig,
                    {.error = "vLLM does not answer for an adapter here",
                     .where = "custom.extra.rollout_matching.rollout_backend",
                     .what = path + " is an adapter",
                     .fix = "use `native`, or merge it: rematch merge " + path + " --out DIR"});
  }
  Adapter::load(*session.model, read_peft_adapter(path), path);
}

AskedModel load_asked_model(const RunArguments& arguments) {
  AskedModel asked;
  require_model_first(arguments.config_path, arguments.records);
  if (looks_like_hub_id(arguments.config_path)) require_model_dir(arguments.config_path);
  if (!arguments.records.empty() && !fs::exists(arguments.config_path)) {
    throw UserError(ErrorKind::kConfig, {.error = "no such model or configuration",
                                         .where = arguments.config_path,
                                         .what = arguments.config_path + " does not exist",
                                         .fix = "use a directory with a config.json, a run's "
                                                "directory, or a YAML file"});
  }
  const bool is_directory = fs::is_directory(arguments.config_path);
  std::vector<std::string> overrides;
  if (is_directory) {
    overrides = directory_settings(arguments, asked);
  } else if (!arguments.records.empty()) {
    overrides = {set_text("custom.val_jsonl", arguments.records)};
  }
  if (!arguments.answer_format.empty()) {
    overrides.push_back("custom.answer_format=" + arguments.answer_format);
    if (!answer_formats().find(arguments.answer_format).has_coord_tokens) {
      // Keys of training with coord tokens, which nothing is trained with here.
      overrides.push_back("custom.extra.rollout_matching.target_policy=rewrite");
      overrides.push_back("custom.coord_soft_ce_w1.enabled=false");
    }
  }
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
  asked.config = load_config(is_directory ? "" : arguments.config_path, overrides);
  Settings& settings = asked.config.settings;
  if (asked.is_adapter) adopt_image_area(settings, asked.path);
  if (!is_directory) asked.path = settings.model.directory;
  return asked;
}

}  // namespace rematch
