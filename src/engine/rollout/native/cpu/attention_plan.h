#pragma once
#include <cstdint>
#include <vector>

#include "engine/rollout/native/step.h"
#include "model/kernels/attention.h"

namespace rematch {

/// Distribution of a step's attention over workers; the same for every layer. It does not affect
/// the bits of results.
class CpuAttentionPlan {
 public:
  /// A task without pointers to activations, which differ between layers.
  struct Task {
    size_t sequence = 0;
    int64_t kv_head = 0;
    kernels::Range queries;
    int64_t num_spans = 0;
    int64_t first_partial = -1;  ///< ≥ 0: its spans are separate items, to be combined
  };
  struct Item {
    size_t task = 0;
    int64_t span = -1;  ///< -1: all spans of the task
  };

  /// @param group  query heads per key/value head. Cost: O(items)
  void make(const Step& step, int64_t num_kv_heads, int64_t group, int num_workers);

  const std::vector<Task>& tasks() const { return tasks_; }
  const std::vector<Item>& items() const { return items_; }
  /// number of spans computed separately; 0 = nothing to combine
  int64_t num_partials() const { return num_partials_; }
  /// The items of one worker: contiguous, with about equal work for all workers.
  kernels::Range share(int worker, int num_workers) const;

 private:
  std::vector<Task> tasks_;
  std::vector<Item> items_;
  std::vector<int64_t> work_until_;  ///< [items] cumulative work up to and including an item
  int64_t num_partials_ = 0;
};

}  // namespace rematch
