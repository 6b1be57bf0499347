#pragma once
#include <optional>

#include "config/node.h"

namespace rematch {

/// One error for a file of flat arguments (`model:`, `train_type:`, `lora_rank:` … at the top
/// level), with the same values as a sectioned configuration; none for any other file.
std::optional<Problem> flat_arguments(const Node& root);

}  // namespace rematch
