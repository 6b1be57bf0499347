#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/content_key.h"

namespace rematch {

/// A copy of a sequence's recurrent state, before the step.
struct StateCopy {
  int32_t from = 0;
  int32_t to = 0;
};

/// Slots for the recurrent states of sequences, for models with layers of the delta rule.
/// Torch-free: slot numbers only.
///
/// Every running sequence has its own slot, because each token changes the state: unlike
/// blocks of keys, states are never shared, only copied. Slots without a sequence hold saved
/// states: the state after a prompt, for other answers to the same prompt. They are overwritten
/// when a sequence needs a slot, least recently used first.
class StatePool {
 public:
  explicit StatePool(int64_t num_slots);

  int64_t num_slots() const { return std::ssize(slots_); }
  int64_t num_used() const { return num_used_; }
  /// Slots that allocate() can return: all that no sequence has.
  int64_t num_available() const { return num_slots() - num_used_; }
  /// Saved states that find() can return.
  int64_t num_saved() const;

  /// Returns a slot for a sequence; its content is undefined, and a saved state in it is lost. One
  /// must be available. Cost O(slots).
  int32_t allocate();
  /// Releases the slot of a sequence.
  void release(int32_t slot);

  /// Returns the slot to copy a state to, which find() returns from now on; nullopt if the state is
  /// saved already or every slot has a sequence. Cost O(slots).
  std::optional<int32_t> save(const ContentKey& key);
  /// Slot of the saved state with that key. Copy it in this step: a later allocate() or save() may
  /// overwrite it, and copies of a step are made in order. Cost O(slots).
  std::optional<int32_t> find(const ContentKey& key);

 private:
  struct Slot {
    bool is_used = false;
    std::optional<ContentKey> key;  ///< of the saved state
    uint64_t found_at = 0;          ///< when it was saved or last found
  };
  int32_t take_unused();

  std::vector<Slot> slots_;
  int64_t num_used_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace rematch
