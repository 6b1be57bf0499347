#pragma once
#include <cstdint>
#include <exception>
#include <functional>

#include "base/interrupt.h"
#include "ranks/group.h"

namespace rematch {

/// The ranks that run one engine together, in lock-step: vLLM's own messages block in the middle of
/// a step until every rank is there, so that no rank may stop, or go on, by itself. Between steps
/// they exchange a word: an interrupt of one is one of all, and of a failure all learn which rank
/// it began on. With one rank nothing is exchanged.
class EngineRanks {
 public:
  /// @param group     null: the engine is this rank's own; else on one host, whose clock tells
  /// which failure came first
  /// @param on_failure  ends vLLM on this rank, so that the others do not wait for it there
  /// @param is_interrupted  whether this rank is, where there are several; tests have flags of
  /// their own, as their ranks are one process
  EngineRanks(Group* group, std::function<void()> on_failure,
              std::function<bool()> is_interrupted = interrupt_requested);
  bool is_alone() const { return group_.is_alone(); }

  /// Work of a rank on its own: done by all, or all throw.
  void together(const std::function<void()>& part) const;
  /// A stretch in which vLLM may wait for the other ranks. @throws as `part`, or PeerFailure when
  /// another rank failed first
  void attempt(const std::function<void()>& part);
  /// Before each step. @throws Interrupted, PeerFailure on all ranks. Cost: a word every 16 steps
  void before_step();
  /// After the last step, or a single attempt(). @throws as before_step(); EngineFailure when not
  /// all ranks are there
  void after_last_step();

 private:
  void exchange(bool has_finished);
  [[noreturn]] void settle(const std::exception_ptr& failure, int64_t time_ns);

  Group& group_;
  std::function<void()> on_failure_;
  std::function<bool()> is_interrupted_;
  int64_t num_steps_ = 0;
};

}  // namespace rematch
