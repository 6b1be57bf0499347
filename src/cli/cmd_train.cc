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

/// The command that continues an interrupted run.
std::string continuing_command(const RunArguments& arguments, const OutputSettings& output,
                               const World& world) {
  const std::string key = "training.resume_from_checkpoint=";
  std::string command = "rematch train " + shell_word(arguments.config_path);
  for (const std::string& value : arguments.overrides) {
    if (!value.starts_with(key)) command += " --set " + shell_word(value);
  }
  if (arguments.device != "auto") command += " --device " + shell_word(arguments.device);
  if (!world.is_alone()) command = "the same command with";
  // A new version has a new directory.
  const std::vector<CheckpointName> saved =
      output.add_version ? list_saved_checkpoints(output.run_dir) : std::vector<CheckpointName>{};
  return command + " --set " + shell_word(key + (saved.empty() ? "latest" : saved.back().path));
}

}  // namespace

int run_train(const RunArguments& arguments) {
  const World world = world_from_environment();
  ConfigResult result = load_config(arguments.config_path, arguments.overrides, world.size);
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
