// The program `rematch`. Arguments are declared in run_commands.cc, stage_command.cc and with the
// commands themselves; the work is in cmd_*.cc.
#include <CLI/CLI.hpp>
#include <string>

#include "cli/program.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Rematch — rollout-matching SFT for vision-language models: the model answers, its answer is "
      "matched with the ground truth, and "
      "the model learns from the result.\n"
      "Start with `scripts/demo`; every configuration key is in docs/config.md.",
      "rematch"};
  app.set_version_flag("--version", std::string("rematch ") + REMATCH_VERSION + " (libtorch " +
                                        REMATCH_TORCH_VERSION + ")");
  return rematch::run_program(app, rematch::add_commands, argc, argv);
}
