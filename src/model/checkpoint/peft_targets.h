#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Tokens with trained embedding rows: an entry of `trainable_token_indices`.
struct PeftTokens {
  std::string module;              ///< suffix or whole name; empty = the input embedding
  std::vector<int64_t> token_ids;  ///< in the order of the rows
};

/// The modules of a base model that an adapter applies to, as PEFT selects them.
struct PeftTargets {
  Strings target_modules;                   ///< suffixes or whole names
  std::optional<std::string> target_regex;  ///< replaces target_modules; matches whole names
  std::vector<int> layers_to_transform;     ///< restrict target_modules; empty = all layers
  Strings layers_pattern;                   ///< names of the lists of these layers; empty = any
  Strings modules_to_save;
  std::vector<PeftTokens> trainable_tokens;
  bool ensure_weight_tying = false;  ///< a saved embedding is also the head
};

}  // namespace rematch
