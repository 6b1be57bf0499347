#pragma once
#include <string>

#include "config/config.h"
#include "observe/terminal.h"

namespace rematch {

/// Assembles a training, each part from those before it, and runs it: session, optimizer, rollouts, logs, checkpoints, then the loop.
/// @param result  a checked configuration. @param device  value of --device
/// @throws UserError; Interrupted after the state has been saved
void run_training(const ConfigResult& result, const std::string& device, Terminal& terminal);

}  // namespace rematch
