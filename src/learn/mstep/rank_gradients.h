#pragma once
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/mstep/gradient_bucket.h"
#include "learn/mstep/gradient_sum.h"

namespace rematch {

/// Sums gradients over ranks, in rounds. In a round every rank sends its gradients to the owners of
/// the parameters, and each owner adds them in rank order, in float32. ReduceOnce and ExactRows
/// decide when a rank's gradients of a round are complete.
///
/// Every parameter has one owner, the only rank with its sum. Owners hold whole tensors, so norms,
/// updates and files are those of a single process. While the object exists, a hook takes every
/// gradient as soon as it is computed; a bucket is sent when its last gradient is complete, while
/// the backward pass continues. Gradients that arrive one after another have different owners, and
/// a message holds values for most owners, so that it uses every link. The first step shows the
/// order in which gradients arrive; from the second step on, buckets follow that order. Memory on
/// each rank, in float32: its own gradients of the round until they are sent, its owned sums, and
/// at most two messages in flight.
///
/// Exchanges are asynchronous and do not report failures. So once begin() has returned, a rank
/// launches all exchanges of the step: in finish(), or else in discard().
class RankGradients : public GradientSum {
 public:
  /// @param bucket_bytes  of float32 gradients in a message (4 MiB an owner where that is more)
  RankGradients(std::vector<ParameterGroup> groups, Group& group, int zero_stage,
                int64_t bucket_bytes);
  ~RankGradients() override;
  RankGradients(const RankGradients&) = delete;
  RankGradients& operator=(const RankGradients&) = delete;

  std::vector<ParameterGroup> updated_groups() const override;
  std::vector<ParameterGroup> owned_groups() const override;
  int64_t window_index(int64_t row) const override { return row * group_.size() + group_.rank(); }

  void sum_counts(std::span<double> counts) override { group_.all_reduce(counts); }
  void begin(const std::vector<bool>& is_trained) override;
  void end_row() override;
  double finish(double max_norm) override;
  void update(const std::function<void()>& step) override;
  void discard() override;
  std::optional<std::vector<ScaledLoss>> gather_losses(std::vector<ScaledLoss> own) override;

 protected:
  /// Rounds of a step in which no rank has more than `most_rows` rows.
  virtual int64_t count_rounds(int64_t most_rows) const = 0;
  /// True if the backward pass of this rank's row `row` completes its gradients of the round.
  virtual bool ends_round(int64_t row) const = 0;
  /// −1 if none of this rank's rows is trained.
  int64_t last_trained_row() const { return last_trained_row_; }

 private:
  class Hook;
  void assign_owners();
  void make_buckets(const std::vector<size_t>& order);
  void take_gradient(size_t parcel_idx);
  void add_own(GradientParcel& parcel);
  void launch(GradientBucket& bucket);
  std::vector<double> owned_norms();
  void end_round();
  void learn_order();
  double clip(double max_norm);
  void share(const GradientBucket::Values& values, const GradientBucket::Values& targets,
             at::ScalarType dtype);

  std::vector<ParameterGroup> groups_;
  Group& group_;
  int zero_stage_;
  int64_t bucket_bytes_;
  std::vector<GradientParcel> parcels_;            ///< in the order of the groups
  std::vector<std::pair<size_t, size_t>> places_;  ///< by parcel: group, index in it
  /// in the order in which they are sent, the same on every rank
  std::vector<GradientBucket> buckets_;
  /// parcels in the order of their first gradients, until the order is learned
  std::vector<int64_t> arrivals_;
  bool knows_order_ = false;

  // of the current step
  int64_t row_ = 0, last_trained_row_ = -1;
  int64_t round_ = 0, num_rounds_ = 0;
  size_t num_launched_ = 0;  ///< buckets of this round that were sent
  std::deque<GradientBucket*> in_flight_;
};

}  // namespace rematch
