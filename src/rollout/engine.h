#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flow/rollout.h"
#include "settings/generation.h"

namespace rematch {

/// How to decode, with the values that only a run has.
struct GenerateOptions : GenerationSettings {
  uint64_t seed = 0;  ///< with epoch, sample_id and position, the key of every draw (BEHAVIOUR 4.7)
  std::vector<TokenId> stop_ids;
};

/// Version for RolloutEngine::sync_weights() that never equals the last one: an evaluation, which
/// may come in the middle of a window, needs the current weights.
inline constexpr int64_t kWeightsOfNow = -1;

/// The rollout backend as the loop sees it. Which one runs is decided once, in
/// assembly/rollouts.cc.
class RolloutEngine {
 public:
  virtual ~RolloutEngine() = default;
  /// True when the engine keeps its own copy of the weights: then offload makes room for it
  /// (BEHAVIOUR 11), and only sync_weights() gives it the new ones.
  virtual bool holds_own_weights() const { return false; }
  /// Makes the engine use the training weights of this version; a no-op for engines that share
  /// them. Offload may have moved the model's parameters to host memory.
  virtual void sync_weights(int64_t version) = 0;
  /// Answers every prompt, in order. No gradients, no packing. Polls for interrupts between tokens
  /// (throws Interrupted).
  /// @param on_progress  called with the number of finished prompts, may be empty
  virtual std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                        const std::function<void(int)>& on_progress) = 0;
  /// Greedy choices so far where the two best logits nearly tied (BEHAVIOUR 4.2); 0 for engines
  /// that show no logits.
  virtual int64_t num_near_ties() const { return 0; }
  /// Releases what is only needed while generating (caches).
  virtual void release() = 0;

  // A turn of generating, for an engine that several ranks share; the others need none. EngineTurn
  // calls these.
  virtual void begin_turn() {}
  /// Returns when all ranks have ended their turns; until then this rank answers the others'
  /// prompts with them.
  virtual void end_turn() {}
  /// Stops the other ranks after a failure; without effect outside a turn.
  virtual void abandon_turn() noexcept {}
};

/// The scope in which this rank may generate. Either all ranks that share an engine enter it, or
/// none. Scopes may be nested; the first end() ends the turn. When an exception leaves the scope,
/// the other ranks stop too.
class EngineTurn {
 public:
  explicit EngineTurn(RolloutEngine& engine) : engine_(engine) { engine_.begin_turn(); }
  ~EngineTurn() { engine_.abandon_turn(); }
  EngineTurn(const EngineTurn&) = delete;
  void end() { engine_.end_turn(); }

 private:
  RolloutEngine& engine_;
};

}  // namespace rematch
