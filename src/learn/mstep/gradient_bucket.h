#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/ranks/gradient_messages.h"
#include "engine/ranks/group.h"

namespace rematch {

/// Parameters that exchange their gradients in one message. A round is filled parameter by
/// parameter, launched and settled, which adds it to the adders' sums. Only a round in flight has
/// memory for its message: the gradients that this rank sends and those it receives, in float32.
class GradientBucket {
 public:
  /// @param parts  in the order of the message; the same on every rank
  GradientBucket(const std::vector<ParcelPart>& parts, Group& group);
  GradientBucket(GradientBucket&&) noexcept = default;
  GradientBucket& operator=(GradientBucket&&) noexcept = default;

  /// Declares that the round gets no further gradient of this parameter. Once per round.
  void complete(const GradientParcel& parcel);
  bool is_complete() const { return num_complete_ == parts_.size(); }
  /// Starts the exchange of a round, complete or not. Every rank calls it.
  void launch();
  /// Waits for the round in flight, if any, and adds it to the sums in rank order.
  void settle();
  /// After the last round: gives the owners the sums that other ranks added for them. Every rank
  /// calls it.
  void collect();
  /// Waits for everything in flight, then drops all gradients and sums.
  void discard();
  /// On a device, for each part of this rank: the number of gradients in its sum, as a float32
  /// tensor [1] there; empty on the CPU, where a parcel without gradients has no sum.
  std::vector<std::pair<GradientParcel*, at::Tensor>> take_counts();

  /// A tensor of the parameter's shape for each parcel.
  using Values = std::function<at::Tensor(GradientParcel&)>;
  /// Starts to send tensors from the owners to all others, for the parcels that have a gradient. No
  /// round is in flight.
  /// @param values  called for owned parcels
  /// @param may_be_bfloat16  parameters are sent, where all that an owner sends are bfloat16; else
  /// float32, which represents the values exactly
  void start_sharing(const Values& values, bool may_be_bfloat16);
  /// Waits for these tensors.
  /// @param targets  called for parcels of other ranks; gets the values
  void finish_sharing(const Values& targets);

 private:
  struct Part : ParcelPart {
    size_t index = 0;          ///< in its adder's chunk
    int64_t values_at = 0;     ///< offset of its values in that chunk
    bool is_complete = false;  ///< in the round that is being filled
    bool has_sum = false;      ///< the values of sum() are valid
    at::Tensor lent_sum;       ///< its sum on an adder that is not the owner
    at::Tensor num_gradients;  ///< in the sum, on a device

    at::Tensor sum(bool at_owner = false);
  };
  bool is_own(int rank) const { return rank == group_->rank(); }
  static void use_own(Part& part);
  at::TensorOptions message_options() const;
  void fill_message();
  void add_round(int rank);
  void add_to_sum(Part& part, const at::Tensor& gradient, bool may_keep);

  std::vector<Part> parts_;
  std::vector<std::vector<Part*>> by_adder_, by_owner_;
  Group* group_;
  bool on_device_;
  size_t num_complete_ = 0;
  /// by adder: values that it gets from each other rank in a round
  std::vector<int64_t> chunk_sizes_;
  /// by rank; each rank sends itself one placeholder value
  std::vector<int64_t> send_counts_, receive_counts_;
  std::vector<int64_t> send_begins_, receive_begins_;
  /// of a round in flight; flat, float32, on the group's message_device()
  at::Tensor send_, receive_;
  /// of shared tensors in flight, by owner; undefined for an owner without parts
  std::vector<at::Tensor> shared_;
  std::vector<std::function<void()>> waits_for_owners_;
  /// for the round in flight; empty if there is none
  std::function<void()> wait_;
};

}  // namespace rematch
