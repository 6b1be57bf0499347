#pragma once
#include <string>

#include "config/config.h"
#include "ranks/group.h"
#include "observe/terminal.h"

namespace rematch {

/// Assembles a training (session, optimizer, rollouts, logs, checkpoints) and runs it.
/// @param result  a checked configuration, the same on every rank (RankProcess). @param device
/// value of --device
/// @param group   ranks of the training
/// @throws UserError; Interrupted after the state has been saved
void run_training(const ConfigResult& result, const std::string& device, Terminal& terminal,
                  Group& group = alone());

}  // namespace rematch
