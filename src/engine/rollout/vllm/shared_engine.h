#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/ranks/group.h"
#include "engine/rollout/engine.h"

namespace rematch {

/// An engine that several ranks run together, from the view of one rank. The engine receives the
/// prompts of all ranks, in rank order, and each rank keeps the answers to its own. Numbers of
/// prompts and of generate() calls may differ between ranks: a rank that has finished its turn
/// keeps generating for the others.
class SharedEngine : public RolloutEngine {
 public:
  /// @param engine  the same on every rank; all ranks call its generate() with the same prompts, in
  /// lock-step
  /// @param ranks   outlives the engine
  SharedEngine(std::unique_ptr<RolloutEngine> engine, Group& ranks)
      : engine_(std::move(engine)), ranks_(ranks) {}

  bool holds_own_weights() const override { return engine_->holds_own_weights(); }
  void sync_weights(int64_t version) override { engine_->sync_weights(version); }
  /// Call it within a turn.
  /// @throws as the engine; PeerFailure if a rank left its turn with an error
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>& on_progress) override;
  void release() override { engine_->release(); }

  /// Ends when all ranks have finished; until then this rank generates for the others.
  void take_turn(const std::function<void()>& body) override;

 private:
  enum class State { kHasPrompts, kHasFinished, kHasFailed };
  struct Round;
  Round meet(State state, const std::vector<Prompt>& prompts);
  void generate_for_others();
  void report_failure() noexcept;

  std::unique_ptr<RolloutEngine> engine_;
  Group& ranks_;
  bool is_in_turn_ = false;
};

}  // namespace rematch
