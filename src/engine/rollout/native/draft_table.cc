#include "engine/rollout/native/draft_table.h"

#include <algorithm>

namespace rematch {
namespace {

// Counts are halved beyond this, because the model learns and answers change.
constexpr double kMaxTried = 512;

}  // namespace

DraftTable::DraftTable(std::span<const TokenId> coord_ids) {
  for (const TokenId id : coord_ids) {
    if (id < 0) continue;
    if (static_cast<size_t>(id) >= is_coord_.size()) is_coord_.resize(static_cast<size_t>(id) + 1);
    is_coord_[id] = true;
  }
  for (std::vector<Slot>& slots : slots_) slots.resize(kNumSlots);
}

uint64_t DraftTable::hash(size_t rule, const DraftContext& context) const {
  uint64_t mixed = 0x9E3779B97F4A7C15ULL;
  for (const TokenId id : context.last(kRules[rule].length)) {
    const bool is_coord = id >= 0 && static_cast<size_t>(id) < is_coord_.size() && is_coord_[id];
    mixed = (mixed ^ static_cast<uint32_t>(is_coord && kRules[rule].folds_coords ? -2 : id)) *
            0xD6E8FEB86659FD93ULL;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

const DraftTable::Slot* DraftTable::find(size_t rule, uint64_t hash) const {
  const Slot& slot = slots_[rule][hash % kNumSlots];
  return slot.token_id >= 0 && slot.tag == static_cast<uint32_t>(hash >> 32) ? &slot : nullptr;
}

DraftTable::Guess DraftTable::guess(const DraftContext& context) const {
  Guess best;
  for (size_t rule = 0; rule < kRules.size(); ++rule) {
    const Slot* const slot = find(rule, hash(rule, context));
    if (slot == nullptr) continue;
    const double probability = counts_[rule][slot->num_right].probability();
    if (probability > best.probability) best = {slot->token_id, probability};
  }
  return best;
}

void DraftTable::learn(const DraftContext& context, TokenId token_id) {
  for (size_t rule = 0; rule < kRules.size(); ++rule) {
    const uint64_t context_hash = hash(rule, context);
    const Slot* const known = find(rule, context_hash);
    Slot& slot = slots_[rule][context_hash % kNumSlots];
    if (known == nullptr) {
      slot = {static_cast<uint32_t>(context_hash >> 32), token_id, 0};
      continue;
    }
    const bool is_right = slot.token_id == token_id;
    Count& count = counts_[rule][slot.num_right];
    count.right += is_right ? 1 : 0;
    count.tried += 1;
    if (count.tried > kMaxTried) count = {count.right / 2, count.tried / 2};
    if (is_right) {
      slot.num_right = std::min<uint32_t>(slot.num_right + 1, kMaxInARow);
    } else if (slot.num_right > 1) {
      slot.num_right = 1;  // one miss does not discard the token
    } else {
      slot = {slot.tag, token_id, 0};
    }
  }
}

}  // namespace rematch
