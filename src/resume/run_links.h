#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "resume/trainer_state.h"

namespace rematch {

/// Points the links `best` and `last` of a run directory to the best checkpoint that is there and
/// to the newest one; removes a link that has no checkpoint any more. A link is replaced in one
/// step, so that it never leads nowhere. Nothing of the program depends on them: where a file
/// system has no links, or something else has the name, training goes on.
/// @param last_step  of the newest checkpoint of this history
/// @return a warning for each link that could not be made
std::vector<std::string> update_run_links(const std::string& run_dir, const TrainerState& state,
                                          int64_t last_step);

/// A model directory that a user named.
struct NamedModel {
  std::string path;
  std::string note;  ///< which checkpoint of a run was chosen; empty when `path` is what was named
};

/// Directory of the model that a user means: of a run directory its checkpoint `best`, else `last`,
/// else the newest; any other path as it is, for others to judge.
NamedModel find_model(const std::string& path);

}  // namespace rematch
