#pragma once
#include <functional>
#include <vector>

#include "program/cli/command_set.h"

namespace rematch {

/// The body of main(): parses the command line, runs the command that it names and prints errors.
/// The only place that decides exit codes.
/// @param app   named as the program
/// @param add   adds the program's commands
/// @return exit code of the process
int run_program(CLI::App& app, const std::function<std::vector<Command>(CLI::App&)>& add, int argc,
                char** argv);

}  // namespace rematch
