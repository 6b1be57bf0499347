#include "assembly/run.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/out_of_memory.h"
#include "cli/rank_process.h"
#include "config/config.h"
#include "resume/resume.h"

namespace rematch {

namespace {

const std::string kResumeKey = "training.resume_from_checkpoint=";

/// The command that continues an interrupted run.
std::string continuing_command(const RunArguments& arguments, const OutputSettings& output,
                               const World& world) {
  std::string command = "rematch train " + shell_word(arguments.config_path);
  for (const std::string& value : arguments.overrides) {
    if (!value.starts_with(kResumeKey)) command += " --set " + shell_word(value);
  }
  if (arguments.device != "auto") command += " --device " + shell_word(arguments.device);
  if (!world.is_alone()) command = "the same command with";
  // A new version has a new directory.
  const std::vector<CheckpointName> saved =
      output.add_version ? list_saved_checkpoints(output.run_dir) : std::vector<CheckpointName>{};
  if (saved.empty()) return command + " --resume";
  return command + " --set " + shell_word(kResumeKey + saved.back().path);
}

/// @throws UserError (config) for two answers to where the run resumes
std::vector<std::string> overrides_of(const RunArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.resume) return overrides;
  const std::optional<std::string> written =
      load_config(arguments.config_path, overrides).settings.checkpoints.resume_from_checkpoint;
  if (written && *written != "latest") {
    throw UserError(ErrorKind::kConfig,
                    {.error = "the run would resume from two places",
                     .where = "--resume and " + kResumeKey + *written,
                     .what = "--resume stands for --set training.resume_from_checkpoint=latest",
                     .fix = "leave one of them out"});
  }
  overrides.push_back(kResumeKey + "latest");
  return overrides;
}

}  // namespace

int run_train(const RunArguments& arguments) {
  const World world = world_from_environment();
  ConfigResult result = load_config(arguments.config_path, overrides_of(arguments), world.size);
  install_training_signals();
  RankProcess process(world, result, arguments.device);
  try {
    run_training(result, process.device(), process.terminal(), process.group());
  } catch (const UserError&) {
    throw;
  } catch (const Interrupted&) {
    process.terminal().say("continue with: " +
                           continuing_command(arguments, result.settings.output, world));
    throw;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError(ErrorKind::kEnvironment, out_of_memory(error, process.group().phase()));
  }
  return 0;
}

}  // namespace rematch
