// The program `rematch`: command_set.cc lists the commands; each has a file with its options, such
// as cmd_train.cc.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "program/cli/program.h"

namespace rematch {
namespace {

// A command of earlier versions.
int refuse_launch() {
  std::cerr << format_problem({.error = "`rematch launch` was removed: torchrun starts the ranks",
                               .where = "rematch launch",
                               .what = "torchrun comes with torch",
                               .fix =
                                   "torchrun --no-python --nproc-per-node 2 rematch train my.yaml "
                                   "(docs/distributed.md)"});
  return exit_code(ErrorKind::kConfig);
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "launch") return rematch::refuse_launch();
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
