#pragma once
#include <string>

namespace rematch {

/// Conditions that end a rollout which repeats itself (`repeat_terminate`, BEHAVIOUR 4.5).
struct RepeatGuardSettings {
  bool enabled = false;
  int min_new_tokens = 256;
  int max_consecutive_token_repeats = 64;
  int ngram_size = 64;
  int ngram_repeats = 2;
  int max_object_keys = 0;  ///< 0 = no limit

  // Without a key.
  std::string entry_key = "object_";  ///< prefix of the keys to count, from the answer format

  bool operator==(const RepeatGuardSettings&) const = default;
};

/// Settings of the `native` backend; none of them changes an answer.
struct NativeSettings {
  int max_num_seqs = 64;  ///< most sequences decoded together, ≥ 1
  /// upper limit of the key/value cache; 0 = from free memory and the needs of the prompts
  double kv_cache_gib = 0;

  // Without a key.
  int block_len = 16;        ///< tokens per cache block, ≥ 1
  int max_step_rows = 0;     ///< most tokens computed in one step; 0 = by device
  bool prefix_cache = true;  ///< compute shared prompt prefixes once
  bool drafts = true;        ///< draft probable tokens (CPU)

  bool operator==(const NativeSettings&) const = default;
};

/// Settings of decoding for all backends. The names are the keys under
/// `custom.extra.rollout_matching`.
struct GenerationSettings {
  int max_new_tokens = 512;
  double temperature = 0.0;  ///< 0 = greedy
  double top_p = 1.0;
  int top_k = 0;  ///< 0 = off
  double repetition_penalty = 1.0;
  int batch_size = 1;  ///< `rollout_generate_batch_size`; `hf` only
  RepeatGuardSettings repeat_terminate;
  NativeSettings native;

  bool operator==(const GenerationSettings&) const = default;
};

}  // namespace rematch
