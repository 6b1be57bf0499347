#pragma once
#include <optional>

#include "config/node.h"

namespace rematch {

/// Detects a file of flat arguments (`model:`, `train_type:`, `lora_rank:` … at the top level) and
/// returns one error whose fix has the same values in sections; nullopt for other files.
std::optional<Problem> check_flat_arguments(const Node& root);

}  // namespace rematch
