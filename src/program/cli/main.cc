// The program `rematch`: command_set.cc lists the commands; each has a file with its options, such
// as cmd_train.cc.
#include <CLI/CLI.hpp>
#include <string>

#include "program/cli/program.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Rematch: fine-tune a vision-language model as a detector, and see whether it works. Stage 2 "
      "lets the model answer, matches its answer with your boxes, and teaches the corrected "
      "answer.\n"
      "Start with `scripts/demo`; every configuration key is in docs/config.md.",
      "rematch"};
  app.set_version_flag("--version", std::string("rematch ") + REMATCH_VERSION + " (libtorch " +
                                        REMATCH_TORCH_VERSION + ")");
  return rematch::run_program(app, rematch::add_commands, argc, argv);
}
