#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "dist/group.h"
#include "mstep/optim/adamw.h"

namespace rematch {

/// Adds up a window's gradients over the ranks, in turns: turn t is row t of rank 0, then row t of rank 1, … Rows are dealt to the ranks in
/// turn, so this is the order of the window itself: the sums are those that one process with all rows would make, in the same float32
/// additions, to the bit, whatever the number of ranks. Every parameter belongs to one rank, its owner, which alone holds its sum; owners
/// hold whole tensors, so that norms, updates and files are those of one process too.
///
/// A turn's gradients travel to their owners while the next row is computed. Memory on each rank: twice the trained values in float32 (one
/// row on its way out, one on its way in), and the sums of what it owns. Traffic: every row's gradients once.
class GradientTurns {
 public:
  GradientTurns(const std::vector<ParameterGroup>& groups, Group& group);

  /// The groups with the parameters that this rank owns.
  std::vector<ParameterGroup> owned() const;

  /// Ends a turn: takes the gradients of this rank's row out of the parameters' .grad, where there are any, and starts sending them. Every
  /// rank calls it equally often.
  void give();
  /// Waits for the last turn: the owned parameters' .grad are the sums, all others have none.
  void finish();
  /// Drops all sums, after waiting for those in flight.
  void discard();

  /// Clips the owned gradients by the norm of all ranks'; as clip_grad_norm.
  double clip(double max_norm);
  /// Gives every rank the gradients of all owners (in place of sharded optimizer state).
  void share_gradients();
  /// Gives every rank the values of all owners, after their updates.
  void share_values();

 private:
  struct Parcel {
    at::Tensor parameter;
    std::pair<size_t, size_t> place;  ///< group, index in it
    int owner = 0;
    int64_t values_at = 0;  ///< of the gradient in its owner's chunk
    at::Tensor sum;         ///< of an owned parameter; undefined without a gradient so far
  };
  at::TensorOptions message_options() const { return at::TensorOptions().dtype(at::kFloat).device(group_.message_device()); }
  void assign_owners();
  void settle();
  void share(const std::function<at::Tensor(Parcel&)>& of, const std::function<void(Parcel&, const at::Tensor&)>& take);
  std::vector<Parcel*> parcels_of(int owner);

  std::vector<ParameterGroup> groups_;
  Group& group_;
  std::vector<Parcel> parcels_;       ///< in the order of the groups
  std::vector<int64_t> chunk_sizes_;  ///< values that travel to each owner in a turn
  at::Tensor send_, receive_;         ///< flat, float32, on the group's message_device()
  std::function<void()> wait_;        ///< for the turn on its way; empty: none is
};

}  // namespace rematch
