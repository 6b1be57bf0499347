#pragma once
#include <string>

#include "base/settings/output.h"

namespace rematch {

/// The directory of a run: output_dir[/version][/run_name]. Creates nothing.
/// @param resumes_latest  `resume_from_checkpoint: latest`: with add_version, returns the newest
/// version that has a checkpoint of this run, if there is one
std::string run_directory(const OutputSettings& output, bool resumes_latest = false);

}  // namespace rematch
