#include "engine/rollout/native/state_pool.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {

StatePool::StatePool(int64_t num_slots) {
  REMATCH_CHECK(num_slots >= 1, fmt::format("{} states", num_slots));
  slots_.resize(num_slots);
}

int64_t StatePool::num_saved() const {
  return std::ranges::count_if(slots_, [](const Slot& slot) { return slot.key.has_value(); });
}

// An empty slot, the lowest first, or else the saved state that was found longest ago.
int32_t StatePool::take_unused() {
  const auto rank = [](const Slot& slot) {
    return slot.is_used ? UINT64_MAX : slot.key ? slot.found_at + 1 : 0;
  };
  const auto best = std::ranges::min_element(
      slots_, [&](const Slot& a, const Slot& b) { return rank(a) < rank(b); });
  REMATCH_CHECK(!best->is_used, fmt::format("all {} states are used", num_slots()));
  best->key.reset();
  return static_cast<int32_t>(best - slots_.begin());
}

int32_t StatePool::allocate() {
  const int32_t slot = take_unused();
  slots_[slot].is_used = true;
  ++num_used_;
  return slot;
}

void StatePool::release(int32_t slot) {
  REMATCH_CHECK(slot >= 0 && slot < num_slots() && slots_[slot].is_used,
                fmt::format("state {} of {}", slot, num_slots()));
  slots_[slot].is_used = false;
  --num_used_;
}

std::optional<int32_t> StatePool::save(const ContentKey& key) {
  if (find(key) || num_available() == 0) return std::nullopt;
  const int32_t slot = take_unused();
  slots_[slot].key = key;
  slots_[slot].found_at = clock_++;
  return slot;
}

std::optional<int32_t> StatePool::find(const ContentKey& key) {
  for (Slot& slot : slots_) {
    if (!slot.key || *slot.key != key) continue;
    slot.found_at = clock_++;
    return static_cast<int32_t>(&slot - slots_.data());
  }
  return std::nullopt;
}

}  // namespace rematch
