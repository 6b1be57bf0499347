// `rematch train CONFIG`: stage 1 or stage 2.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal_text.h"
#include "learn/resume/checkpoint_list.h"
#include "program/assembly/rank_process.h"
#include "program/assembly/run.h"
#include "program/assembly/run_directory.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/out_of_memory.h"

namespace rematch {

namespace {

struct TrainArguments : ConfigArguments {
  bool resume = false;
};

const std::string kResumeKey = "training.resume_from_checkpoint=";

/// Says how to continue an interrupted run.
std::string continuing_text(const TrainArguments& arguments, const Settings& settings,
                            const World& world) {
  if (settings.checkpoints.save_only_model)
    return "`training.save_only_model: true` keeps nothing to resume from: a new run can start "
           "from the saved weights (`model.model`)";
  std::string command = "continue with: rematch train " + shell_word(arguments.config_path);
  for (const std::string& value : arguments.overrides) {
    if (!value.starts_with(kResumeKey)) command += " --set " + shell_word(value);
  }
  if (arguments.device != "auto") command += " --device " + shell_word(arguments.device);
  if (!world.is_alone()) command = "continue with: the same command with";
  // A new version has a new directory.
  const std::vector<CheckpointName> saved = settings.output.add_version
                                                ? list_saved_checkpoints(settings.output.run_dir)
                                                : std::vector<CheckpointName>{};
  if (saved.empty()) return command + " --resume";
  return command + " --set " + shell_word(kResumeKey + saved.back().path);
}

/// @throws UserError (config) for two answers to where the run resumes
Strings overrides_of(const TrainArguments& arguments) {
  Strings overrides = arguments.overrides;
  if (!arguments.resume) return overrides;
  const std::optional<std::string> written =
      load_config(arguments.config_path, overrides).settings.checkpoints.resume_from_checkpoint;
  if (written && *written != "latest") {
    throw config_error({.error = "the run would resume from two places",
                        .where = "--resume and " + kResumeKey + *written,
                        .what = "--resume stands for --set training.resume_from_checkpoint=latest",
                        .fix = "leave one of them out"});
  }
  overrides.push_back(kResumeKey + "latest");
  return overrides;
}

int run_train(TrainArguments arguments) {
  const World world = world_from_environment();
  arguments.overrides = overrides_of(arguments);
  auto [result, note] = load_run(arguments.config_path, arguments.overrides, world.size);
  install_training_signals();
  RankProcess process(world, result, arguments.device);
  const Place place = process.place();
  if (!note.empty()) place.terminal.say(note);
  try {
    run_training(result, place);
  } catch (const UserError&) {
    throw;
  } catch (const Interrupted&) {
    place.terminal.say(continuing_text(arguments, result.settings, world));
    throw;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError(ErrorKind::kEnvironment, out_of_memory(error, place.group.phase()));
  }
  return 0;
}

}  // namespace

Command add_train_command(CLI::App& app) {
  const auto [command, train, arguments] = make_command(
      app, "train", "train stage 1 or stage 2 (custom.trainer_variant: rollout_matching_sft)",
      run_train, {"my.yaml", "my.yaml --set training.seed=1 --set training.run_name=seed1"},
      /*writes_files=*/true);
  add_config_arguments(train, arguments);
  train.add_flag("--resume", arguments.resume,
                 "continue from the newest checkpoint of the run directory, as "
                 "training.resume_from_checkpoint: latest; without one a new run starts");
  return command;
}

}  // namespace rematch
