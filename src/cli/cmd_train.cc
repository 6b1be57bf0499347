#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "assembly/run.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/out_of_memory.h"
#include "config/config.h"
#include "dist/device.h"
#include "dist/error_file.h"
#include "dist/ranks.h"

namespace rematch {
namespace {

// On the watchdog's thread, while others wait in calls that never return: nothing is destroyed.
[[noreturn]] void end_process(const std::string& problem) {
  std::cerr << problem << std::flush;
  write_error_file(problem);
  ::_exit(exit_code(ErrorKind::kEnvironment));
}

Ranks::Listener listener() {
  return {.warn = [](const std::string& text) { std::cerr << "warning: " + text + "\n" << std::flush; }, .lost = end_process};
}

/// The terminal of a rank: the real one for rank 0, a file for each other.
class RankTerminal {
 public:
  RankTerminal(const std::string& run_dir, int rank) {
    if (rank == 0) {
      terminal_ = Terminal::standard();
      return;
    }
    make_directories(run_dir + "/logs");
    file_.open(fmt::format("{}/logs/rank-{}.log", run_dir, rank), std::ios::app);
    terminal_ = std::make_unique<Terminal>(file_, file_, Terminal::Options{});
  }
  Terminal& operator*() { return *terminal_; }
  Terminal* operator->() { return terminal_.get(); }

 private:
  std::ofstream file_;
  std::unique_ptr<Terminal> terminal_;
};

void say_threads(Terminal& terminal, const World& world, const std::string& device) {
  if (world.is_alone() || device.rfind("cuda", 0) == 0) return;
  terminal.say(fmt::format("{} ranks with {} thread{} each (OMP_NUM_THREADS; torchrun sets 1)", world.size, at::get_num_threads(),
                           at::get_num_threads() == 1 ? "" : "s"));
}

}  // namespace

int run_train(const RunArguments& arguments) {
  const World world = world_from_environment();
  ConfigResult result = load_config(arguments.config_path, arguments.overrides, world.size);
  install_training_signals();
  const std::string device = device_of_rank(arguments.device, world, num_gpus());
  Ranks ranks(world, listener(),
              {.patience = std::chrono::seconds(result.settings.ddp_timeout), .backend = result.settings.ddp_backend, .device = device});
  agree_on_output(result.settings.output, ranks.group());
  RankTerminal terminal(result.settings.output.run_dir, world.rank);
  for (const Warning& warning : result.warnings) terminal->warn(warning.text + " (" + warning.where + ")");
  say_threads(*terminal, world, device);
  try {
    run_training(result, device, *terminal, ranks.group());
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw UserError(ErrorKind::kEnvironment, out_of_memory(error, ranks.group().phase()));
  }
  return 0;
}

}  // namespace rematch
