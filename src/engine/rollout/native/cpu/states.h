#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/rollout/native/cpu/buffer.h"
#include "engine/rollout/native/step.h"
#include "model/families/description.h"
#include "model/kernels/delta.h"

namespace rematch {

/// Sizes of a key head and its value heads for the kernels.
inline kernels::DeltaShape delta_shape(const DeltaDescription& delta) {
  return {.key_dim = delta.key_head_dim,
          .value_dim = delta.value_head_dim,
          .group = delta.num_value_heads / delta.num_key_heads};
}

/// Bytes of a sequence's recurrent state in all layers on the CPU, float32; 0 = the model has none.
inline int64_t cpu_state_bytes(const TextDescription& text) {
  const DeltaDescription* const delta = text.delta();
  if (delta == nullptr) return 0;
  return text.num_delta_layers() * delta->num_key_heads * delta_shape(*delta).state_floats() *
         static_cast<int64_t>(sizeof(float));
}

/// Recurrent states of all layers of the delta rule: [layer][slot][key head][state].
class CpuStates {
 public:
  explicit CpuStates(const TextDescription& text) : num_layers_(text.num_delta_layers()) {
    if (text.delta() == nullptr) return;
    shape_ = delta_shape(*text.delta());
    num_key_heads_ = text.delta()->num_key_heads;
  }

  const kernels::DeltaShape& shape() const { return shape_; }
  int64_t num_slots() const { return std::ssize(num_folded_); }

  /// Makes room for that many states; contents are lost if the number changes.
  void reserve(int64_t num_slots) {
    if (num_slots != this->num_slots()) numbers_.release();
    numbers_.reserve(num_slots * num_layers_ * slot_floats());
    num_folded_.assign(static_cast<size_t>(num_slots), 0);
  }
  void release() {
    numbers_.release();
    num_folded_.clear();
  }

  /// State of a key head.
  float* head(int64_t layer_idx, int64_t slot, int64_t key_head) const {
    return numbers_.data() + (layer_idx * num_slots() + slot) * slot_floats() +
           key_head * shape_.state_floats();
  }
  /// Tokens in the matrices of a slot (model/kernels/delta.h).
  int64_t num_folded(const StepSequence& sequence) const {
    return sequence.num_cached == 0 ? 0 : num_folded_[sequence.state];
  }
  /// Call it after all layers of a step.
  void advance(const Step& step) {
    for (const StepSequence& sequence : step.sequences) {
      num_folded_[sequence.state] =
          kernels::delta_folded(sequence.num_cached, sequence.num_known());
    }
  }
  void copy(int32_t from, int32_t to) {
    if (from == to) return;
    for (int64_t i = 0; i < num_layers_; ++i) {
      std::memcpy(head(i, to, 0), head(i, from, 0),
                  static_cast<size_t>(slot_floats()) * sizeof(float));
    }
    num_folded_[to] = num_folded_[from];
  }

 private:
  int64_t slot_floats() const { return num_key_heads_ * shape_.state_floats(); }

  kernels::DeltaShape shape_;
  int64_t num_key_heads_ = 0, num_layers_ = 0;
  CpuBuffer<float> numbers_;
  std::vector<int64_t> num_folded_;  ///< by slot
};

}  // namespace rematch
