#include "engine/ranks/store_guard.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rematch {
namespace {

constexpr int kMostExtra = 2;                // intervals that a stretched one also counts for
constexpr std::chrono::seconds kStretch{1};  // makes an interval count for one more

}  // namespace

int IntervalCount::next(std::chrono::milliseconds interval) {
  const auto now = std::chrono::steady_clock::now();
  const auto late = now - std::exchange(last_, now) - interval;
  return 1 + std::clamp(static_cast<int>(late / kStretch), 0, kMostExtra);
}

StoreGuard::StoreGuard(Options options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void StoreGuard::answered(const std::string& heartbeat) {
  const std::lock_guard lock(mutex_);
  num_silent_ = 0;
  if (!heartbeat.empty()) heartbeat_ = "; last heartbeat: " + heartbeat;
}

void StoreGuard::watch(const std::stop_token& stop) {
  IntervalCount count;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, stop, options_.interval, [&] { return stop.stop_requested(); })) {
    num_silent_ += count.next(options_.interval);
    if (num_silent_ < options_.limit) continue;
    return options_.give_up(fmt::format("{}, has not answered for {} s: it is stopped or cut off{}",
                                        options_.host, num_silent_, heartbeat_));
  }
}

}  // namespace rematch
