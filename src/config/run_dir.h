#pragma once
#include <string>

#include "settings/output.h"

namespace rematch {

/// The directory of a run: output_dir[/version][/run_name]. Creates nothing.
/// @param go_on  with add_version: the newest version that holds a checkpoint of this run, when
/// there is one
///               (`resume_from_checkpoint: latest`)
std::string run_directory(const OutputSettings& output, bool go_on = false);

}  // namespace rematch
