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

/// How to decode; the same for every backend.
struct GenerateOptions {
  int max_new_tokens = 512;
  double temperature = 0.0;  ///< 0 = greedy
  double top_p = 1.0;
  int top_k = 0;             ///< 0 = off
  double repetition_penalty = 1.0;
  uint64_t seed = 0;         ///< with epoch, sample_id and position, the key of every draw (BEHAVIOUR 4.7)
  int batch_size = 1;        ///< rollout_generate_batch_size; `hf` only
  std::vector<int> stop_ids;
  RepeatGuardOptions repeat_terminate;
};

/// The rollout backend as the loop sees it. Which one runs is decided once, in train/run.cc.
class RolloutEngine {
 public:
  virtual ~RolloutEngine() = default;
  /// Makes the engine use the training weights of this version; a no-op for engines that share them.
  virtual void sync_weights(int64_t version) = 0;
  /// Answers every prompt, in order. No gradients, no packing. Polls for interrupts between tokens (throws Interrupted).
  /// @param on_progress  called with the number of finished prompts, may be empty
  virtual std::vector<Rollout> generate(const std::vector<Prompt>& prompts, const std::function<void(int)>& on_progress) = 0;
  /// Gives back what is only needed while generating (caches).
  virtual void release() = 0;
};

}  // namespace rematch
