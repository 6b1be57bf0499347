#include "assembly/run.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/out_of_memory.h"
#include "cli/rank_process.h"
#include "config/config.h"

namespace rematch {

int run_train(const RunArguments& arguments) {
  const World world = world_from_environment();
  ConfigResult result = load_config(arguments.config_path, arguments.overrides, world.size);
  install_training_signals();
  RankProcess process(world, result, arguments.device);
  try {
    run_training(result, process.device(), process.terminal(), process.group());
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError(ErrorKind::kEnvironment, out_of_memory(error, process.group().phase()));
  }
  return 0;
}

}  // namespace rematch
