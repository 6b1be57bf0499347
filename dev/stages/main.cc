// The program `rematch-stages`: every stage of the loop on JSON lines, for tests and scripts. It is
// not installed.
#include <CLI/CLI.hpp>

#include "program/cli/program.h"
#include "tool_stages.h"

int main(int argc, char** argv) {
  CLI::App app{"Runs a stage of Rematch's loop alone (docs/contract/STAGES.md).", "rematch-stages"};
  const auto add = [](CLI::App& to) {
    return rematch::add_stage_commands(to, rematch::all_stages());
  };
  return rematch::run_program(app, add, argc, argv);
}
