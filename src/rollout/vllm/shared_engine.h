#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ranks/group.h"
#include "rollout/engine.h"

namespace rematch {

/// An engine that several ranks run together, seen by one of them: each rank brings prompts of its
/// own, the engine gets those of all, in rank order, and each keeps its share of the answers. Ranks
/// may bring different numbers of prompts, or none, and a different number of times: a rank that
/// has finished its turn answers for the others until they have too.
class SharedEngine : public RolloutEngine {
 public:
  /// @param engine  the same on every rank; its generate() is called with the same prompts, in
  /// lock-step
  /// @param ranks   outlives the engine
  SharedEngine(std::unique_ptr<RolloutEngine> engine, Group& ranks)
      : engine_(std::move(engine)), ranks_(ranks) {}

  bool holds_own_weights() const override { return engine_->holds_own_weights(); }
  void sync_weights(int64_t version) override { engine_->sync_weights(version); }
  /// Within a turn. @throws as the engine; PeerFailure when a rank has left its turn with an error
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override { engine_->release(); }

  void begin_turn() override { is_in_turn_ = true; }
  void end_turn() override;
  void abandon_turn() noexcept override;

 private:
  enum class State { kAsks, kHasFinished, kHasFailed };
  struct Round;
  Round meet(State state, const std::vector<Prompt>& prompts);

  std::unique_ptr<RolloutEngine> engine_;
  Group& ranks_;
  bool is_in_turn_ = false;
};

}  // namespace rematch
