#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "ranks/group.h"

namespace rematch {

/// A trained parameter and its gradients in the exchange between the ranks.
struct GradientParcel {
  at::Tensor parameter;
  int owner = 0;             ///< rank that holds its sum
  size_t bucket = 0;         ///< index in the list of buckets
  size_t index = 0;          ///< in its owner's chunk of that bucket
  int64_t values_at = 0;     ///< offset of its values in that chunk
  bool is_complete = false;  ///< in the round that is being filled
  /// this rank's gradients of a round, in float32; undefined if there are none
  at::Tensor own;
  at::Tensor sum;  ///< owner only: all rounds before; undefined if there was no gradient yet
};

/// Parameters that exchange their gradients in one message. A round is filled parameter by
/// parameter, launched, and added to the owners' sums when the next round's first gradient arrives.
/// Memory on each rank: the gradients it sends and those it receives, in float32.
class GradientBucket {
 public:
  /// @param parcels  in the order of the message; the same on every rank
  GradientBucket(std::vector<GradientParcel*> parcels, Group& group);

  /// Adds the parameter's .grad to this rank's gradients of the round, and resets it. Waits for
  /// the previous round.
  void add(GradientParcel& parcel);
  /// Declares that the round gets no further gradient of this parameter. Once per round.
  void complete(GradientParcel& parcel);
  bool is_complete() const { return num_complete_ == parcels_.size(); }
  /// Starts the exchange of a round, complete or not. Every rank calls it.
  void launch();
  /// Waits for the round in flight, if any, and adds it to the sums in rank order.
  void settle();
  /// Waits for everything in flight, then drops all gradients and sums.
  void discard();

  using Values = std::function<at::Tensor(GradientParcel&)>;
  using Receive = std::function<void(GradientParcel&, const at::Tensor&)>;
  /// Starts to send a tensor for each parcel from its owner to all others. No round is in flight.
  /// @param values  called for owned parcels; may return an undefined tensor
  void start_sharing(const Values& values);
  /// Waits for these tensors. @param receive  called for parcels of other ranks; the tensors are
  /// views of the bucket's memory, valid until the next round
  void finish_sharing(const Receive& receive);

 private:
  bool is_own(int rank) const { return rank == group_.rank(); }
  at::Tensor slot_in_message(const GradientParcel& parcel) const;
  at::Tensor chunk_to_share(int owner) const;

  std::vector<GradientParcel*> parcels_;
  std::vector<std::vector<GradientParcel*>> by_owner_;
  Group& group_;
  size_t num_complete_ = 0;
  /// by owner: values that it gets from each other rank in a round
  std::vector<int64_t> chunk_sizes_;
  /// by rank; each rank sends itself one placeholder value
  std::vector<int64_t> send_counts_, receive_counts_;
  std::vector<int64_t> send_begins_, receive_begins_;
  /// flat, float32, on the group's message_device()
  at::Tensor send_, receive_;
  /// for shared tensors, by owner; empty for an owner without parcels
  std::vector<std::function<void()>> waits_for_owners_;
  /// for the round in flight; empty if there is none
  std::function<void()> wait_;
};

}  // namespace rematch
