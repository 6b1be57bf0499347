#include "base/interrupt.h"
#include "cli/commands.h"
#include "config/config.h"
#include "assembly/run.h"

namespace rematch {

int run_train(const RunArguments& arguments) {
  const ConfigResult result = load_config(arguments.config_path, arguments.overrides);
  install_training_signals();
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  for (const Warning& warning : result.warnings) terminal->warn(warning.text + " (" + warning.where + ")");
  run_training(result, arguments.device, *terminal);
  return 0;
}

}  // namespace rematch
