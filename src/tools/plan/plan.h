#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/plan/engine.h"
#include "tools/plan/parameters.h"
#include "tools/plan/request.h"

namespace rematch {

/// A phase of a run, and the memory on one rank's device at its peak.
struct PlanPhase {
  /// "load", "rollout" ("evaluate" in stage 1), "m-step", "update", "save"
  std::string name;
  NamedBytes bytes;
  /// on the host at the same time: offloaded memory, messages between ranks
  NamedBytes host_bytes = {};

  int64_t total() const;
};

/// Memory of a run, phase by phase (docs/plan.md).
struct MemoryPlan {
  ParameterCounts parameters;
  int64_t num_trainable = 0;  ///< trained values of the model or of its adapter
  std::vector<PlanPhase> phases;
  int64_t peak_bytes = 0;
  std::string peak_phase;
  int64_t usable_bytes = 0;  ///< of the device; 0 = unknown
  /// weights, optimizer and gradients between two steps: the minimum for any choice of rows,
  /// batches and recomputation
  int64_t least_bytes = 0;
  bool fits = true;  ///< also true if the device is unknown

  const PlanPhase& phase(const std::string& name) const;
};

/// @throws UserError (config) for tuner settings that the model does not have
MemoryPlan make_plan(const PlanRequest& request);

/// The longest sample (with packing: row) that fits, in tokens, a multiple of 64; 0 = none. At most
/// 2²⁰.
int64_t largest_row(const PlanRequest& request);

/// The largest per_device_train_batch_size that fits; 0 = none. With packing only rollouts limit
/// it. At most 4096.
int64_t largest_batch(const PlanRequest& request);

}  // namespace rematch
