#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ranks/group.h"
#include "mstep/gradient_bucket.h"
#include "mstep/optim/adamw.h"

namespace rematch {

/// Adds up a window's gradients over the ranks, in turns: turn t is row t of rank 0, then row t of
/// rank 1, … Rows are dealt to the ranks in turn, so this is the order of the window itself: the
/// sums are those that one process with all rows would make, in the same float32 additions, to the
/// bit, whatever the number of ranks and the size of buckets. Every parameter belongs to one rank,
/// its owner, which alone holds its sum; owners hold whole tensors, so that norms, updates and
/// files are those of one process too.
///
/// While it lives, a hook takes every gradient as soon as it is complete, and a bucket of them
/// leaves when its last one is there: it travels during the rest of the backward pass and the next
/// row. The first rows show in which order gradients come; buckets are cut in that order from the
/// second window on. Memory on each rank: a row on its way out and one on its way in, at most twice
/// the trained values in float32, and the sums of what it owns. Traffic: what each row adds to the
/// other ranks' sums, once.
class GradientTurns {
 public:
  /// @param bucket_bytes  of float32 gradients in a message; a larger tensor has one of its own
  GradientTurns(const std::vector<ParameterGroup>& groups, Group& group, int64_t bucket_bytes);
  ~GradientTurns();
  GradientTurns(const GradientTurns&) = delete;
  GradientTurns& operator=(const GradientTurns&) = delete;

  /// The groups with the parameters that this rank owns.
  std::vector<ParameterGroup> owned() const;

  /// Ends a turn, after this rank's row, if it has one: what has no gradient is known now. Every
  /// rank calls it equally often.
  void end_turn();
  /// Waits for the last turn: the owned parameters' .grad are the sums, all others have none.
  void finish();
  /// Drops all sums, after waiting for those in flight.
  void discard();

  /// Clips the owned gradients by the norm of all ranks'; as clip_grad_norm.
  double clip(double max_norm);
  /// Gives every rank the gradients of all owners (in place of sharded optimizer state), until the
  /// next turn.
  void share_gradients();
  /// Gives every rank the values of all owners, after their updates.
  void share_values();

 private:
  class Hook;
  void assign_owners();
  void make_buckets(const std::vector<size_t>& order);
  void take(size_t parcel_idx);
  void learn_order();
  void share(const GradientBucket::Of& of, const GradientBucket::Take& take);

  std::vector<ParameterGroup> groups_;
  Group& group_;
  int64_t bucket_bytes_;
  std::vector<GradientParcel> parcels_;            ///< in the order of the groups
  std::vector<std::pair<size_t, size_t>> places_;  ///< of each parcel: group, index in it
  /// in the order in which they leave, on every rank
  std::vector<GradientBucket> buckets_;
  size_t num_launched_ = 0;  ///< buckets of this turn that have left
  /// parcels in the order of their first gradients, until the order is learnt
  std::vector<int64_t> arrivals_;
  bool knows_order_ = false;
};

}  // namespace rematch
