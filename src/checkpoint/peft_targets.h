#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

/// Tokens whose rows an adapter trains: an entry of `trainable_token_indices`.
struct PeftTokens {
  std::string module;              ///< suffix or whole name; empty = the input embedding
  std::vector<int64_t> token_ids;  ///< in the order of the rows
};

/// Which modules of a base model an adapter belongs to, in PEFT's words.
struct PeftTargets {
  std::vector<std::string> target_modules;  ///< suffixes or whole names
  std::optional<std::string> target_regex;  ///< instead of them: a full match
  std::vector<std::string> modules_to_save;
  std::vector<PeftTokens> trainable_tokens;
  bool ensure_weight_tying = false;  ///< a saved embedding is also the head
};

}  // namespace rematch
