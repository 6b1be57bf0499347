#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/rollout.h"
#include "base/settings/generation.h"

namespace rematch {

/// Decoding settings of a run.
struct GenerateOptions : GenerationSettings {
  uint64_t seed = 0;  ///< with epoch, sample_id and position, the key of every draw (BEHAVIOUR 4.7)
  std::vector<TokenId> stop_ids;
};

/// Argument of RolloutEngine::sync_weights() that always syncs: an evaluation in the middle of a
/// window needs the current weights.
inline constexpr int64_t kCurrentWeights = -1;

/// Interface of a rollout backend. program/assembly/engine.cc chooses the backend of a run.
class RolloutEngine {
 public:
  virtual ~RolloutEngine() = default;
  /// True if the engine has its own copy of the weights: offload makes room for it (BEHAVIOUR 11),
  /// and sync_weights() updates it.
  virtual bool holds_own_weights() const { return false; }
  /// Updates the engine to this version of the training weights; a no-op for engines that share
  /// them. The model's parameters may be offloaded to host memory.
  virtual void sync_weights(int64_t version) = 0;
  /// Generates an answer to every prompt, in order, without gradients or packing. Throws
  /// Interrupted between tokens.
  /// @param on_progress  called with the number of finished prompts; may be empty
  virtual std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                        const std::function<void(int)>& on_progress) = 0;
  /// Number of greedy choices so far in which the two best logits nearly tied (BEHAVIOUR 4.2); 0
  /// for engines that return no logits.
  virtual int64_t num_near_ties() const { return 0; }
  /// Releases memory that is needed only while generating (caches).
  virtual void release() = 0;

  /// Runs `body` as this rank's turn, in which it may call generate() any number of times. All
  /// ranks that share an engine take their turns together: the call returns when all of them are
  /// finished, and if `body` fails on one rank, the others stop too. Turns are not nested.
  virtual void take_turn(const std::function<void()>& body) { body(); }
};

}  // namespace rematch
