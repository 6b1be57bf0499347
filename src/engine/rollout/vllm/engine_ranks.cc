#include "engine/rollout/vllm/engine_ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/engine_failure.h"
#include "engine/rollout/vllm/vllm_errors.h"

namespace rematch {
namespace {

constexpr int64_t kStepsPerExchange = 16;

// The monotonic clock of the host, which all its processes share.
int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

EngineRanks::EngineRanks(Group* group, std::function<void()> on_failure,
                         std::function<bool()> is_interrupted)
    : group_(group != nullptr ? *group : alone()),
      on_failure_(std::move(on_failure)),
      is_interrupted_(std::move(is_interrupted)) {}

void EngineRanks::together(const std::function<void()>& work) const {
  rematch::together(group_, work);
}

void EngineRanks::attempt(const std::function<void()>& work) {
  if (is_alone()) return work();
  std::exception_ptr failure;
  int64_t time_ns = 0;
  try {
    return work();
  } catch (...) {
    time_ns = now_ns();  // before the others can notice
    failure = std::current_exception();
  }
  on_failure_();
  std::array<int64_t, 3> flags{0, /*failed*/ 1, 0};
  group_.all_reduce(flags);
  rethrow_first_failure(failure, time_ns);
}

void EngineRanks::before_step() {
  if (is_alone()) return throw_if_interrupted();
  count_interrupt_check();
  if (num_steps_++ % kStepsPerExchange == 0) exchange_flags(false);
}

void EngineRanks::after_last_step() {
  num_steps_ = 0;
  if (!is_alone()) exchange_flags(true);
}

void EngineRanks::exchange_flags(bool has_finished) {
  std::array<int64_t, 3> flags{is_interrupted_() ? 1 : 0, 0, has_finished ? 1 : 0};
  group_.all_reduce(flags);
  const auto [num_interrupted, num_failed, num_finished] = flags;
  if (num_failed > 0) rethrow_first_failure(nullptr, 0);
  if (num_finished == group_.size()) return;
  if (num_finished > 0) {
    on_failure_();
    throw EngineFailure(
        ErrorKind::kEnvironment,
        {.error = "the ranks of a vLLM engine are out of step",
         .where = kVllmSection + ".tensor_parallel_size",
         .what = fmt::format("{} of {} ranks have finished", num_finished, group_.size()),
         .fix = "set vllm.tensor_parallel_size: 1, or set rollout_backend: hf"});
  }
  if (num_interrupted > 0) {
    num_steps_ = 0;
    throw Interrupted{};
  }
}

// One failure makes vLLM fail on the other ranks too. Rethrows the first failure; the other ranks
// throw PeerFailure.
void EngineRanks::rethrow_first_failure(const std::exception_ptr& failure, int64_t time_ns) {
  num_steps_ = 0;
  if (!failure) on_failure_();
  std::vector<int64_t> times(static_cast<size_t>(group_.size()), 0);
  times[group_.rank()] = time_ns;
  group_.all_reduce(times);
  const auto is_earlier = [](int64_t a, int64_t b) { return a != 0 && (b == 0 || a < b); };
  const auto first = std::ranges::min_element(times, is_earlier) - times.begin();
  rematch::together(group_, [&] {
    if (failure && first == group_.rank()) std::rethrow_exception(failure);
  });
  REMATCH_CHECK(false, "the failure of an engine was not reported");
  std::terminate();
}

}  // namespace rematch
