#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// Moves what a run left behind a step out of the way of a run that goes on from there: every
/// checkpoint of a later step into a new directory `abandoned-N` of the run directory, with a copy
/// of the log. Otherwise `latest` could continue the other history.
/// @return the directory; nothing when there is no later checkpoint. @throws UserError
/// (environment)
std::optional<std::string> move_later_checkpoints_aside(const std::string& run_dir, int64_t step);

}  // namespace rematch
