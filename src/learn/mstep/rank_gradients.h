#pragma once
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/mstep/gradient_bucket.h"
#include "learn/mstep/make_gradient_sum.h"

namespace rematch {

/// Sums gradients over ranks, in rounds. In a round every rank sends its gradients to the owners of
/// the parameters, and each owner adds them in rank order, in float32.
///
/// By default every rank sums its own rows in float32, and the step has one round of exchanges,
/// during the rank's last backward pass. Sums run over a rank's rows, then over the ranks in rank
/// order: the same bits in every run with the same number of ranks. Traffic is that of
/// DistributedDataParallel, for any number of rows.
///
/// `training.exact_ranks`: one round of exchanges per row, first row 0 of every rank, then row 1,
/// and so on. Rows are distributed round-robin, so this is window order: the sums are bit for bit
/// those of one process with all rows, for any number of ranks. With m rows per rank the traffic is
/// (m + 1) / 2 times that of one round.
///
/// Every parameter has one owner, the only rank with its sum. Owners hold whole tensors, so norms,
/// updates and files are those of a single process. While the object exists, a hook takes every
/// gradient as soon as it is computed; a bucket is sent when its last gradient is complete, while
/// the backward pass continues. Gradients that arrive one after another have different owners, and
/// a message holds values for most owners, so that it uses every link; of a message for few of them
/// every rank adds a part, and the owners get the sums after the last round. The first step shows
/// the order in which gradients arrive; from the second step on, buckets follow that order. Memory
/// on each rank, in float32: its own gradients of the round until they are sent, its sums, and at
/// most two messages in flight.
///
/// Exchanges are asynchronous and do not report failures. So once begin() has returned, a rank
/// launches all exchanges of the step: in finish(), or else in discard(). With
/// GradientSumOptions::meet a rank in a row may wait for the others, which must not wait for its
/// gradients then: a round begins when all ranks have met after its rows, and only the rounds that
/// have begun are launched in any case.
class RankGradients final : public GradientSum {
 public:
  /// @param options  bucket_bytes: of float32 gradients in a message (4 MiB an owner where that is
  /// more)
  RankGradients(std::vector<ParameterGroup> groups, Group& group,
                const GradientSumOptions& options);
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

 private:
  class Hook;
  /// True if the backward pass of this rank's current row completes its gradients of the round.
  bool ends_round() const { return options_.exact_ranks || row_ == last_trained_row_; }
  /// True if gradients are sent while the row's backward pass continues.
  bool sends_in_row() const { return ends_round() && !options_.meet; }
  void make_buckets(const std::vector<size_t>& order);
  void take_gradient(size_t parcel_idx);
  void add_own(GradientParcel& parcel);
  void launch(GradientBucket& bucket);
  std::vector<double> owned_norms();
  void end_round();
  void meet();
  int64_t num_all_rounds() const { return options_.exact_ranks ? num_rows_ : 1; }
  void collect();
  void learn_order();
  double clip(double max_norm);
  void share(const GradientBucket::Values& values, const GradientBucket::Values& targets,
             bool may_be_bfloat16);

  std::vector<ParameterGroup> groups_;
  Group& group_;
  GradientSumOptions options_;
  std::vector<GradientParcel> parcels_;            ///< in the order of the groups
  std::vector<std::pair<size_t, size_t>> places_;  ///< by parcel: group, index in it
  /// in the order in which they are sent, the same on every rank
  std::vector<GradientBucket> buckets_;
  /// parcels in the order of their first gradients, until the order is learned
  std::vector<int64_t> arrivals_;
  bool knows_order_ = false;

  // of the current step
  int64_t row_ = 0;
  int64_t last_trained_row_ = -1;  ///< −1 if none of this rank's rows is trained
  int64_t num_rows_ = 0;           ///< the most rows of a rank
  int64_t round_ = 0;
  int64_t num_rounds_ = 0;    ///< that every rank sends, whatever happens
  size_t num_launched_ = 0;   ///< buckets of this round that were sent
  size_t num_collected_ = 0;  ///< buckets whose lent sums are with the owners
  std::deque<GradientBucket*> in_flight_;
};

}  // namespace rematch
