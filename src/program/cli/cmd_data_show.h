#pragma once
#include "program/cli/command_set.h"

namespace rematch {

/// `rematch data show`.
/// @param data  the command `data`
Command add_data_show(CLI::App& data);

}  // namespace rematch
