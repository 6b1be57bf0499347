#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flow/rollout.h"

namespace rematch {

/// When to end a row that goes round in circles (BEHAVIOUR 4.5).
struct RepeatGuardOptions {
  bool enabled = false;
  int min_new_tokens = 256;
  int max_consecutive_token_repeats = 64;
  int ngram_size = 64;
  int ngram_repeats = 2;
  int max_object_keys = 0;  ///< 0 = no cap
};

/// What only the `native` backend asks for. Nothing in here changes an answer.
struct NativeOptions {
  int max_num_seqs = 64;     ///< `native.max_num_seqs`: sequences decoded together, ≥ 1
  double kv_cache_gib = 0;   ///< `native.kv_cache_gib`: the most the key/value cache may take; 0 = by free memory and what the prompts need
  int block_len = 16;        ///< tokens of a cache block, ≥ 1
  int max_step_rows = 0;     ///< tokens computed in one step at most; 0 = by device
  bool prefix_cache = true;  ///< equal starts of prompts are computed once
  bool drafts = true;        ///< probable tokens are computed ahead of their turn (CPU)
};

/// How to decode; the same for every backend.
struct GenerateOptions {
  int max_new_tokens = 512;
  double temperature = 0.0;  ///< 0 = greedy
  double top_p = 1.0;
  int top_k = 0;  ///< 0 = off
  double repetition_penalty = 1.0;
  uint64_t seed = 0;   ///< with epoch, sample_id and position, the key of every draw (BEHAVIOUR 4.7)
  int batch_size = 1;  ///< rollout_generate_batch_size; `hf` only
  std::vector<TokenId> stop_ids;
  RepeatGuardOptions repeat_terminate;
  NativeOptions native;
};

/// Version for RolloutEngine::sync_weights() that never equals the last one: an evaluation wants the weights as they are, wherever in a window.
inline constexpr int64_t kWeightsOfNow = -1;

/// The rollout backend as the loop sees it. Which one runs is decided once, in assembly/run.cc.
class RolloutEngine {
 public:
  virtual ~RolloutEngine() = default;
  /// True when the engine keeps a copy of the weights beside the training model's: then offload makes room for it (BEHAVIOUR 11), and only
  /// sync_weights() shows it what was learnt.
  virtual bool holds_own_weights() const { return false; }
  /// Makes the engine use the training weights of this version; a no-op for engines that share them. Offload may have the model's parameters
  /// in host memory meanwhile.
  virtual void sync_weights(int64_t version) = 0;
  /// Answers every prompt, in order. No gradients, no packing. Polls for interrupts between tokens (throws Interrupted).
  /// @param on_progress  called with the number of finished prompts, may be empty
  virtual std::vector<Rollout> generate(const std::vector<Prompt>& prompts, const std::function<void(int)>& on_progress) = 0;
  /// Gives back what is only needed while generating (caches).
  virtual void release() = 0;
};

}  // namespace rematch
