#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/rollout/engine.h"

namespace rematch {

class Tokenizer;

/// Counts complete `"object_…"` keys in text that arrives in pieces. A key counts at its closing
/// quote. A string that is a value (after a colon or inside an array) is never a key.
class ObjectKeyCounter {
 public:
  /// @param key_start  prefix of the keys to count
  explicit ObjectKeyCounter(std::string key_start = "object_") : key_start_(std::move(key_start)) {}

  /// @param bytes  the next piece; may split characters, escapes and keys anywhere
  void feed(std::string_view bytes);
  int count() const { return count_; }

 private:
  void feed_outside(char byte);
  void feed_string(char byte);

  std::string key_start_;
  std::vector<char> containers_;  ///< open '{' and '[', innermost last
  char previous_ = '\0';          ///< last byte outside strings that is not whitespace
  bool in_string_ = false;
  bool escaped_ = false;
  bool is_candidate_ = false;  ///< the open string is in a position of a key
  size_t string_len_ = 0;
  bool matches_ = false;  ///< the open string so far agrees with key_start_
  int count_ = 0;
};

/// Detects repetition in the generated ids of one answer (BEHAVIOUR 4.5). Torch-free, O(1) per
/// token and byte.
class RepeatGuard {
 public:
  /// @param tokenizer  provides token bytes for `max_object_keys`; outlives the guard; may be null
  /// without that cap
  /// @throws UserError (config) for options out of range
  RepeatGuard(const RepeatGuardSettings& options, const Tokenizer* tokenizer);

  /// Adds the next generated id.
  /// @return true if the answer ends with this token (which is kept)
  bool push(TokenId token_id);

  /// Result of cut().
  struct Cut {
    size_t num_kept = 0;
    bool triggered = false;
  };
  /// Applies the guard to a whole answer.
  /// @return the number of ids that are kept; all of them and `triggered = false` if the guard does
  /// not fire
  static Cut cut(const std::vector<TokenId>& generated_ids, const RepeatGuardSettings& options,
                 const Tokenizer* tokenizer);

 private:
  RepeatGuardSettings options_;
  const Tokenizer* tokenizer_;
  std::vector<TokenId> ids_;
  int64_t run_len_ = 0;     ///< equal ids at the end
  int64_t period_len_ = 0;  ///< ids at the end that equal the id `ngram_size` before them
  ObjectKeyCounter keys_;
};

/// Checks ranges.
/// @throws UserError (config) naming the key
void check_repeat_guard_options(const RepeatGuardSettings& options);

}  // namespace rematch
