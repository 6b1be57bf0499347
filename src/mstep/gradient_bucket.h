#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "ranks/group.h"

namespace rematch {

/// A trained parameter whose gradients travel between the ranks.
struct GradientParcel {
  at::Tensor parameter;
  int owner = 0;          ///< rank that holds its sum
  size_t bucket = 0;      ///< place in the list of buckets
  size_t index = 0;       ///< in its owner's chunk of that bucket
  int64_t values_at = 0;  ///< where its values begin in that chunk
  bool is_given = false;  ///< in the turn that is being filled
  /// of an owned parameter: this rank's gradient in a turn, which does not travel; on
  /// message_device()
  at::Tensor row;
  at::Tensor sum;  ///< of an owned parameter; undefined without a gradient so far
};

/// Parameters whose gradients travel in one message, in turns: filled parameter by parameter,
/// launched, and added to the owners' sums when the next turn's first gradient comes. Memory on
/// each rank: its gradients on their way out and the others' on their way in, in float32.
class GradientBucket {
 public:
  /// @param parcels  in the order of the message; the same on every rank
  GradientBucket(std::vector<GradientParcel*> parcels, Group& group);

  /// Takes the parameter's .grad, which may be undefined, after waiting for the last turn. Once a
  /// turn for each parcel.
  void give(GradientParcel& parcel);
  bool is_full() const { return num_given_ == parcels_.size(); }
  /// Starts to send. Parcels that were not given have no gradient in this turn. Every rank calls
  /// it.
  void launch();
  /// Waits for the turn on its way, if one is, and adds it: rank 0's gradient, then rank 1's, … in
  /// float32.
  void settle();
  /// Waits for the turn on its way and drops it, and what was given since.
  void discard();

  using Of = std::function<at::Tensor(GradientParcel&)>;
  using Take = std::function<void(GradientParcel&, const at::Tensor&)>;
  /// Starts to send a tensor for each parcel from its owner to all others, between two turns.
  /// @param of  asked for owned parcels; may be undefined
  void start_sharing(const Of& of);
  /// Waits for them. @param take  gets the others'; flat memory of the bucket, valid until the next
  /// turn
  void finish_sharing(const Take& take);

 private:
  at::Tensor sum_with_turn(GradientParcel& parcel, const std::vector<at::Tensor>& parts) const;
  at::Tensor chunk_to_share(int owner) const;

  std::vector<GradientParcel*> parcels_;
  std::vector<std::vector<GradientParcel*>> by_owner_;
  Group& group_;
  size_t num_given_ = 0;
  /// values that each owner gets from another rank in a turn
  std::vector<int64_t> chunk_sizes_;
  /// by rank; a rank sends itself a single value, which nobody reads
  std::vector<int64_t> send_counts_, receive_counts_;
  std::vector<int64_t> send_begins_, receive_begins_;
  /// by owner and parcel: 1 with a gradient in this turn
  std::vector<std::vector<float>> given_;
  /// flat, float32, on the group's message_device()
  at::Tensor send_, receive_;
  /// while tensors are shared; empty for an owner without parcels
  std::vector<std::function<void()>> waits_for_owners_;
  /// for the turn on its way; empty: none is
  std::function<void()> wait_;
};

}  // namespace rematch
