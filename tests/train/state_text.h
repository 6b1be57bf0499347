#pragma once
#include <string>
#include <string_view>

#include "learn/resume/trainer_state.h"

namespace rematch {

/// The text of a trainer_state.json.
inline std::string to_json(const TrainerState& state) {
  std::string text;
  print_trainer_state(state, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace rematch
