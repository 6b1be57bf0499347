#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/engine.h"
#include "plan/parameters.h"
#include "plan/request.h"

namespace rematch {

/// A stretch of a run, and what one rank's device holds at its fullest moment.
struct PlanPhase {
  std::string name;  ///< "load", "rollout", "m-step", "update", "save"
  NamedBytes bytes;
  /// on the host meanwhile: what offload moves there, messages between ranks
  NamedBytes host_bytes = {};

  int64_t total() const;
};

/// What a run takes, phase by phase (docs/plan.md).
struct MemoryPlan {
  ParameterCounts parameters;
  int64_t num_trainable = 0;  ///< values that are trained, of the model or of its adapter
  std::vector<PlanPhase> phases;
  int64_t peak_bytes = 0;
  std::string peak_phase;
  int64_t usable_bytes = 0;  ///< of the device; 0 = unknown
  bool fits = true;          ///< true when the device is unknown

  const PlanPhase& phase(const std::string& name) const;
};

/// @throws UserError (config) for tuner settings that the model does not have
MemoryPlan make_plan(const PlanRequest& request);

/// What no choice of rows, batches or recomputation can lower: weights, optimizer and gradients
/// between two steps, at least.
int64_t least_bytes(const PlanRequest& request);

/// The longest sample (with packing: row) that still fits, in tokens, to 64 tokens; 0 = none. At
/// most 2²⁰.
int64_t largest_row(const PlanRequest& request);

/// The largest per_device_train_batch_size that still fits; 0 = none. With packing, as large as
/// rollouts allow, at most 4096.
int64_t largest_batch(const PlanRequest& request);

}  // namespace rematch
