#pragma once
#include <cstdint>
#include <exception>
#include <functional>

#include "base/interrupt.h"
#include "engine/ranks/group.h"

namespace rematch {

/// The ranks that run one engine together, in lock-step: vLLM's own communication blocks in the
/// middle of a step until every rank arrives, so no rank may stop or continue alone. Between steps
/// they exchange flags: an interrupt or a failure of one rank reaches all, with the rank that
/// failed first. A single rank exchanges nothing.
class EngineRanks {
 public:
  /// @param group  null: a single rank. Otherwise all ranks are on one host, because its clock
  /// decides which failure came first
  /// @param on_failure  stops vLLM on this rank, so that the others do not wait for it
  /// @param is_interrupted  used with several ranks; tests pass separate flags, because their ranks
  /// share a process
  EngineRanks(Group* group, std::function<void()> on_failure,
              std::function<bool()> is_interrupted = interrupt_requested);
  bool is_alone() const { return group_.is_alone(); }

  /// Runs work that does not wait for other ranks. Succeeds on all ranks, or throws on all.
  void together(const std::function<void()>& work) const;
  /// Runs work in which vLLM may wait for other ranks.
  /// @throws as `work`, or PeerFailure if another rank failed first
  void attempt(const std::function<void()>& work);
  /// Call it before each step.
  /// @throws Interrupted, PeerFailure on all ranks. Cost: one exchange every 16 steps
  void before_step();
  /// Call it after the last step, or after a single attempt().
  /// @throws as before_step(); EngineFailure if some ranks have not finished
  void after_last_step();

 private:
  void exchange_flags(bool has_finished);
  [[noreturn]] void rethrow_first_failure(const std::exception_ptr& failure, int64_t time_ns);

  Group& group_;
  std::function<void()> on_failure_;
  std::function<bool()> is_interrupted_;
  int64_t num_steps_ = 0;
};

}  // namespace rematch
