#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "resume/trainer_state.h"

namespace rematch {

/// Updates the links `best` and `last` of a run directory; removes a link without a checkpoint.
/// Links are replaced atomically, so they are never broken. The program does not depend on them: if
/// the file system has no links, or something else has the name, training continues.
/// @param last_step  of the newest checkpoint of this history
/// @return a warning for each link that could not be updated
std::vector<std::string> update_run_links(const std::string& run_dir, const TrainerState& state,
                                          int64_t last_step);

/// A model directory that a user named.
struct NamedModel {
  std::string path;
  std::string note;  ///< names the chosen checkpoint of a run; empty if `path` is unchanged
};

/// Resolves a path that a user gave for a model: for a run directory its checkpoint `best`, else
/// `last`, else the newest; any other path unchanged and unchecked.
NamedModel find_model(const std::string& path);

}  // namespace rematch
