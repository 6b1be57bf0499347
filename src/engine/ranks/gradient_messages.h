#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rematch {

/// A trained parameter and its gradients in the exchange between the ranks.
struct GradientParcel {
  at::Tensor parameter;
  int owner = 0;  ///< rank that holds its sum, at the latest after collect()
  /// indices in the list of buckets: a large parameter is divided among several
  size_t first_bucket = 0, end_bucket = 0;
  bool has_gradient = true;  ///< after the step's sums are complete: some rank had a gradient
  /// this rank's gradients of a round, in float32; undefined if there are none
  at::Tensor own;
  int64_t num_used = 0;  ///< values of `own` that are sent or added; all: it is dropped
  at::Tensor sum;        ///< owner only: all rounds before; undefined if there was no gradient yet
};

/// Consecutive values of a parcel.
struct ParcelPart {
  GradientParcel* parcel = nullptr;
  int64_t begin = 0, count = 0;
  int adder = 0;  ///< rank that adds their gradients: the parcel's owner, or another one for it

  bool is_lent() const { return adder != parcel->owner; }
  bool is_whole() const { return count == parcel->parameter.numel(); }
  /// Its values in a tensor of the parameter's shape: a flat view.
  at::Tensor of(const at::Tensor& whole) const { return whole.view({-1}).narrow(0, begin, count); }
};

/// Gives each parcel an owner: in the order in which gradients arrive, from the last parameter on,
/// each to the rank with the fewest values so far, so that a message uses every link. Parameters
/// too large for that come first. The same on every rank.
void assign_owners(std::vector<GradientParcel>& parcels, int num_ranks);

/// Divides the values of parcels among messages, and tells each parcel which have its values. A
/// message takes as many values for each owner, once three quarters of the owners have that many.
/// What is left at the end, where the embedding's gradient arrives, may be for few owners: if one
/// of them has more than a message, all ranks add it.
/// @param arriving  in the order in which their gradients arrive
/// @param message_bytes  of float32 gradients (4 MiB an owner where that is more)
std::vector<std::vector<ParcelPart>> divide_into_messages(
    const std::vector<GradientParcel*>& arriving, int num_ranks, int64_t message_bytes);

}  // namespace rematch
