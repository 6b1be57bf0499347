#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flow/rollout.h"
#include "settings/generation.h"

namespace rematch {

/// Decoding settings of a run.
struct GenerateOptions : GenerationSettings {
  uint64_t seed = 0;  ///< with epoch, sample_id and position, the key of every draw (BEHAVIOUR 4.7)
  std::vector<TokenId> stop_ids;
};

/// Argument of RolloutEngine::sync_weights() that always syncs: an evaluation in the middle of a
/// window needs the current weights.
inline constexpr int64_t kCurrentWeights = -1;

/// Interface of a rollout backend. assembly/rollouts.cc chooses the backend of a run.
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

  // For engines that several ranks share; EngineTurn calls them.
  virtual void begin_turn() {}
  /// Returns when all ranks have ended their turns. Until then this rank keeps generating for the
  /// others.
  virtual void end_turn() {}
  /// Stops the other ranks after a failure; no effect outside a turn.
  virtual void abandon_turn() noexcept {}
};

/// The scope in which this rank may generate. All ranks that share an engine must enter it
/// together. Scopes may be nested; the first end() ends the turn. If an exception leaves the scope,
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
