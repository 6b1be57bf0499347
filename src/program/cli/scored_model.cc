#include "program/cli/scored_model.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/path_from.h"
#include "engine/ranks/phase.h"
#include "learn/estep/answer/answer_format.h"
#include "model/checkpoint/model_dir.h"
#include "program/cli/command_set.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// `custom.val_jsonl` of a run; "" without.
std::string run_records(const std::string& run) {
  if (run.empty()) return "";
  const std::string path = join_path(run, "args.json");
  const Json saved = parse_json(read_file(path), path);
  if (!saved.is_object()) return "";
  const Json records = saved.value(Json::json_pointer("/custom/val_jsonl"), Json());
  return records.is_string() ? records.get<std::string>() : "";
}

/// The job of a model, adapter or run directory.
/// @throws UserError (config) without records
JobSource ask_directory(const std::string& named, const ScoredModelArguments& arguments) {
  Checkpoint checkpoint = find_checkpoint(named);
  Asked asked{
      .records = arguments.records.empty() ? run_records(checkpoint.run) : arguments.records,
      .answer_format = arguments.answer_format,
      .overrides = arguments.overrides,
      .force_base = arguments.force_base};
  if (asked.records.empty()) {
    throw UserError(ErrorKind::kConfig,
                    {.error = "a model directory needs records to be asked about",
                     .where = arguments.config_path,
                     .what = "no JSONL was given after it",
                     .fix = "give the records too, as in `rematch eval MODEL data/val.jsonl`, or a "
                            "YAML configuration"});
  }
  return question_to(std::move(checkpoint), asked);
}

/// The job of a configuration.
JobSource ask_configured(const ScoredModelArguments& arguments) {
  Settings base;
  if (!arguments.records.empty()) base.data.val_jsonl = arguments.records;
  JobSource source{.config = load_config(arguments.config_path, arguments.overrides, 1, base)};
  Settings& settings = source.config.settings;
  if (!arguments.records.empty()) settings.data.val_jsonl = arguments.records;
  if (!arguments.answer_format.empty()) settings.data.answer_format = arguments.answer_format;
  const std::string& model = settings.model.directory;
  source.checkpoint = {.path = model, .base = model, .run = run_of_checkpoint(model)};
  return source;
}

/// @throws UserError (environment) for a path that leads nowhere
void require_existing(const std::string& model) {
  if (looks_like_hub_id(model)) require_model_dir(model);
  if (fs::exists(model)) return;
  throw missing_path("model or configuration", model,
                     "use a directory with a config.json, a run's directory, or a YAML file");
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

JobSource load_scored_model(const ScoredModelArguments& arguments, const std::string& checkpoint) {
  require_model_first(arguments.config_path, arguments.records);
  require_existing(arguments.config_path);
  if (!fs::is_directory(arguments.config_path)) return ask_configured(arguments);
  return ask_directory(checkpoint.empty() ? arguments.config_path : checkpoint, arguments);
}

void agree_on_checkpoint(JobSource& source, const ScoredModelArguments& arguments, Group& group) {
  const bool may_differ = fs::is_directory(arguments.config_path);
  run_phase(group, "start", [&] {
    const std::string first = group.broadcast(may_differ ? source.checkpoint.path : "");
    if (!first.empty() && first != source.checkpoint.path)
      source = load_scored_model(arguments, first);
  });
}

}  // namespace rematch
