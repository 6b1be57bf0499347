#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "learn/resume/trainer_state.h"

namespace rematch {

/// Passes the text of trainer_state.json to `print` in pieces of about 1 MiB, so that a long
/// history is never in memory as text.
void print_trainer_state(const TrainerState& state,
                         const std::function<void(std::string_view)>& print);

/// Writes trainer_state.json.
/// @throws UserError (environment), e.g. on a full disk
void write_trainer_state(const TrainerState& state, const std::string& path);

}  // namespace rematch
