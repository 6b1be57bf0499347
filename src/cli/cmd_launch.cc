// `rematch launch --nproc N [--restarts K] train CONFIG …`
#include <fmt/core.h>

#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "ranks/launch.h"

namespace rematch {

int run_launch(const LaunchArguments& arguments) {
  if (arguments.command.empty() ||
      (arguments.command.front() != "train" && arguments.command.front() != "eval")) {
    throw UserError(
        ErrorKind::kConfig,
        {.error = "launch starts `train` and `eval` only",
         .where = "rematch launch",
         .what = arguments.command.empty() ? "no command is given" : join(arguments.command, " "),
         .fix = "rematch launch --nproc 4 train my.yaml"});
  }
  LaunchOptions options{.num_ranks = arguments.num_ranks,
                        .num_restarts = arguments.num_restarts,
                        .command = {std::filesystem::read_symlink("/proc/self/exe").string()},
                        .on_restart = {"--set", "training.resume_from_checkpoint=latest"},
                        .say = [](const std::string& text) {
                          std::cerr << "launch: " + text + "\n" << std::flush;
                        }};
  options.command.insert(options.command.end(), arguments.command.begin(), arguments.command.end());
  return launch_ranks(options);
}

}  // namespace rematch
