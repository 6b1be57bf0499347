#include "engine/rollout/native/cpu/attention_plan.h"

#include <algorithm>

namespace rematch {
namespace {

// With fewer tasks per worker, long tasks are split into spans.
constexpr int64_t kTasksPerWorker = 4;
// The cost of reading a key, in queries that use it.
constexpr int64_t kReadingCost = 2;

}  // namespace

void CpuAttentionPlan::make(const Step& step, int64_t num_kv_heads, int64_t group,
                            int num_workers) {
  tasks_.clear();
  items_.clear();
  work_until_.clear();
  num_partials_ = 0;
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const StepSequence& sequence = step.sequences[s];
    for (int64_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
      for (int64_t begin = 0; begin < sequence.num_rows * group;
           begin += kernels::kAttentionQueries) {
        const int64_t end = std::min(begin + kernels::kAttentionQueries, sequence.num_rows * group);
        const int64_t last_position = sequence.num_cached + (end - 1) / group;
        tasks_.push_back({s, kv_head, {begin, end}, last_position / kernels::kAttentionSpan + 1});
      }
    }
  }
  const bool splits = num_workers > 1 && std::ssize(tasks_) < kTasksPerWorker * num_workers;
  int64_t work = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    Task& task = tasks_[t];
    const int64_t span_work = kernels::kAttentionSpan * (task.queries.size() + kReadingCost);
    if (!splits || task.num_spans == 1) {
      items_.push_back({t, -1});
      work_until_.push_back(work += span_work * task.num_spans);
      continue;
    }
    task.first_partial = num_partials_;
    num_partials_ += task.num_spans;
    for (int64_t span = 0; span < task.num_spans; ++span) {
      items_.push_back({t, span});
      work_until_.push_back(work += span_work);
    }
  }
}

kernels::Range CpuAttentionPlan::share(int worker, int num_workers) const {
  const auto boundary = [&](int64_t w) {
    const int64_t work = work_until_.empty() ? 0 : work_until_.back() * w / num_workers;
    return static_cast<int64_t>(std::ranges::upper_bound(work_until_, work) - work_until_.begin());
  };
  return {boundary(worker), worker + 1 == num_workers ? std::ssize(items_) : boundary(worker + 1)};
}

}  // namespace rematch
