#include "program/cli/scored_model.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/path_from.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/resume/run_links.h"
#include "model/checkpoint/model_dir.h"
#include "model/checkpoint/peft.h"
#include "model/text/stored_prompt.h"
#include "program/assembly/adapter_setup.h"
#include "program/cli/command_set.h"
#include "program/cli/eval_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// `--set` of a text. A JSON string is a double-quoted scalar of YAML.
std::string set_text(const std::string& key, const std::string& text) {
  return key + "=" + python_json_string(text);
}

/// `custom.val_jsonl` of the run of a checkpoint; "" without.
std::string run_records(const std::string& directory) {
  const fs::path run = run_of_checkpoint(directory);
  if (run.empty()) return "";
  const std::string path = (run / "args.json").string();
  const Json saved = parse_json(read_file(path), path);
  if (!saved.is_object()) return "";
  const Json records = saved.value(Json::json_pointer("/custom/val_jsonl"), Json());
  return records.is_string() ? records.get<std::string>() : "";
}

/// @param scored_dir  the model, or the adapter on top of it
std::vector<std::string> settings_for(const std::string& model_dir, const std::string& scored_dir,
                                      const std::string& records) {
  // Results of a run's checkpoint belong to the run.
  const fs::path run = run_of_checkpoint(scored_dir);
  std::string place = "output", name = name_of_evaluated(scored_dir);
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
  const std::optional<StoredPrompt> stored = read_stored_prompt(scored_dir);
  settings.push_back(length + std::to_string(stored ? stored->max_new_tokens : 1024));
  if (!stored) return settings;
  settings.push_back(std::string("template.image_backend=") + name_of(stored->image_backend));
  if (stored->texts.user_prompt)
    settings.push_back(set_text("custom.user_prompt", *stored->texts.user_prompt));
  if (stored->texts.system_prompt)
    settings.push_back(set_text("template.system", *stored->texts.system_prompt));
  return settings;
}

/// The records to ask about.
/// @throws UserError (config) when there are none
std::string choose_records(const ScoredModelArguments& arguments, const std::string& checkpoint) {
  const std::string records =
      arguments.records.empty() ? run_records(checkpoint) : arguments.records;
  if (!records.empty()) return records;
  throw UserError(ErrorKind::kConfig,
                  {.error = "a model directory needs records to be asked about",
                   .where = arguments.config_path,
                   .what = "no JSONL was given after it",
                   .fix = "give the records too, as in `rematch eval MODEL data/val.jsonl`, or a "
                          "YAML configuration"});
}

/// The arguments of the command line as settings, which win over those of the checkpoint.
void add_command_line(std::vector<std::string>& overrides, const ScoredModelArguments& arguments) {
  if (!arguments.answer_format.empty()) {
    overrides.push_back("custom.answer_format=" + arguments.answer_format);
    if (!answer_formats().find(arguments.answer_format).has_coord_tokens) {
      // Keys of training with coord tokens, which nothing is trained with here.
      overrides.push_back("custom.extra.rollout_matching.target_policy=" +
                          default_target_policy(false));
      overrides.push_back("custom.coord_soft_ce_w1.enabled=false");
    }
  }
  overrides.insert(overrides.end(), arguments.overrides.begin(), arguments.overrides.end());
}

/// The job of a model, adapter or run directory.
/// @param checkpoint  the checkpoint of a run
JobSource load_directory(const ScoredModelArguments& arguments, const std::string& checkpoint) {
  JobSource source{.checkpoint = checkpoint,
                   .is_adapter = is_adapter_dir(checkpoint),
                   .force_base = arguments.force_base};
  const std::string base =
      source.is_adapter ? named_base_model(read_peft_adapter(checkpoint), checkpoint) : checkpoint;
  std::vector<std::string> overrides =
      settings_for(base, checkpoint, choose_records(arguments, checkpoint));
  add_command_line(overrides, arguments);
  source.config = load_config("", overrides);
  if (source.is_adapter) source.note = adopt_image_area(source.config.settings, checkpoint);
  source.at = [arguments](const std::string& other) { return load_directory(arguments, other); };
  return source;
}

/// @throws UserError (environment) for a path that leads nowhere
void require_existing(const ScoredModelArguments& arguments) {
  require_model_first(arguments.config_path, arguments.records);
  if (looks_like_hub_id(arguments.config_path)) require_model_dir(arguments.config_path);
  if (fs::exists(arguments.config_path)) return;
  throw missing_path("model or configuration", arguments.config_path,
                     "use a directory with a config.json, a run's directory, or a YAML file");
}

}  // namespace

std::string run_of_checkpoint(const std::string& directory) {
  const fs::path run = (fs::path(directory) / "").lexically_normal().parent_path().parent_path();
  std::error_code error;
  return !run.empty() && fs::is_regular_file(run / "args.json", error) ? run.string() : "";
}

void require_model_first(const std::string& model, const std::string& records) {
  if (!fs::is_regular_file(model) || !fs::is_directory(records)) return;
  throw UserError(ErrorKind::kConfig,
                  {.error = "the model comes before the records",
                   .where = model + " " + records,
                   .what = model + " is a file, and " + records + " a directory",
                   .fix = "change their order: " + records + " " + model});
}

void add_scored_model_arguments(CLI::App& command, ScoredModelArguments& arguments) {
  command
      .add_option(
          "CONFIG|MODEL_DIR", arguments.config_path,
          "YAML configuration, or a checkpoint or adapter as it is, or a run (its best checkpoint)")
      ->required();
  command.add_option("JSONL", arguments.records,
                     "records to ask about; default: custom.val_jsonl of the configuration or run");
  add_overrides(command, arguments.overrides);
  command
      .add_option("--answer-format", arguments.answer_format,
                  "how answers are written; default: that of the configuration, else of the "
                  "checkpoint")
      ->check(CLI::IsMember(answer_formats().names()));
  command.add_flag("--force-base", arguments.force_base, kForceBaseHelp);
  add_device(command, arguments.device);
}

JobSource load_scored_model(const ScoredModelArguments& arguments) {
  require_existing(arguments);
  if (fs::is_directory(arguments.config_path)) {
    const NamedModel named = find_model(arguments.config_path);
    JobSource source = load_directory(arguments, named.path);
    if (!named.note.empty())
      source.note = named.note + (source.note.empty() ? "" : "\n" + source.note);
    return source;
  }
  std::vector<std::string> overrides;
  if (!arguments.records.empty())
    overrides.push_back(set_text("custom.val_jsonl", arguments.records));
  add_command_line(overrides, arguments);
  JobSource source{.config = load_config(arguments.config_path, overrides)};
  source.checkpoint = source.config.settings.model.directory;
  return source;
}

}  // namespace rematch
