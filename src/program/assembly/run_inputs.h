#pragma once
#include "base/output_file.h"
#include "program/config/config.h"

namespace rematch {

/// The files that a run of this configuration reads, so that commands do not overwrite them: the
/// configuration with its bases, every file named by a value (data, prompts, synonyms), and the
/// files of the model.
InputFiles run_inputs(const ConfigResult& config);

}  // namespace rematch
