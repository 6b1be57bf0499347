#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/strings.h"
#include "learn/resume/find_model.h"
#include "learn/resume/trainer_state.h"

namespace rematch {

/// Updates the links `best` and `last` of a run directory; removes a link without a checkpoint.
/// Links are replaced atomically, so they are never broken. The program does not depend on them: if
/// the file system has no links, or something else has the name, training continues.
/// @param last_step  of the newest checkpoint of this history
/// @return a warning for each link that could not be updated
Strings update_run_links(const std::string& run_dir, const RunProgress& progress,
                         int64_t last_step);

}  // namespace rematch
