#include "learn/mstep/rank_gradients.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "base/interrupt.h"
#include "base/wire.h"
#include "engine/ranks/gather.h"

namespace rematch {
namespace {

// Messages that have memory at the same time: one is filled while the other is on its way.
constexpr size_t kMostInFlight = 2;
// Bytes that a message holds for an owner even where there are many: smaller ones cost more time.
constexpr int64_t kSmallestShare = int64_t{4} << 20;

/// Values that one owner has yet to get, in the order in which their gradients arrive. Messages
/// take them from the front.
class PartQueue {
 public:
  void add(GradientParcel& parcel) {
    parts_.push_back({&parcel, 0, parcel.parameter.numel()});
    num_values_ += parcel.parameter.numel();
  }
  bool is_empty() const { return parts_.empty(); }
  int64_t num_values() const { return num_values_; }

  /// Moves at most `most_values` (≥ 1) to a message, and notes in their parcels which it is.
  /// @param bucket_idx  of the message; consecutive calls have consecutive messages
  void take(int64_t most_values, size_t bucket_idx, std::vector<ParcelPart>& message) {
    while (!parts_.empty() && (most_values > 0 || parts_.front().count == 0)) {
      ParcelPart& front = parts_.front();
      const int64_t count = std::min(front.count, most_values);
      if (front.begin == 0) front.parcel->first_bucket = bucket_idx;
      front.parcel->end_bucket = bucket_idx + 1;
      message.push_back({front.parcel, front.begin, count});
      front.begin += count;
      front.count -= count;
      most_values -= count;
      num_values_ -= count;
      if (front.count == 0) parts_.pop_front();
    }
  }

 private:
  std::deque<ParcelPart> parts_;
  int64_t num_values_ = 0;
};

}  // namespace

// Runs after autograd has written a parameter's .grad, once per backward pass.
class RankGradients::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(RankGradients& gradients, size_t parcel_idx)
      : gradients_(gradients), parcel_idx_(parcel_idx) {}
  void operator()(const at::Tensor& /*parameter*/) override {
    gradients_.take_gradient(parcel_idx_);
  }

 private:
  RankGradients& gradients_;
  size_t parcel_idx_;
};

RankGradients::RankGradients(std::vector<ParameterGroup> groups, Group& group,
                             const GradientSumOptions& options)
    : groups_(std::move(groups)), group_(group), options_(options) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      parcels_.push_back({.parameter = groups_[g].parameters[i]});
      places_.emplace_back(g, i);
    }
  }
  assign_owners();

  std::vector<size_t> order(parcels_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  make_buckets(order);

  for (size_t i = 0; i < parcels_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(parcels_[i].parameter,
                                                   std::make_unique<Hook>(*this, i));
  }
}

RankGradients::~RankGradients() {
  for (const GradientParcel& parcel : parcels_)
    torch::autograd::impl::set_post_acc_grad_hooks(parcel.parameter, nullptr);
}

// In the order in which gradients arrive, from the last parameter on, each to the rank with the
// fewest values so far: consecutive gradients go to different ranks, so that a message uses every
// link. Parameters too large for that come first. The same on every rank.
void RankGradients::assign_owners() {
  const int64_t total = std::accumulate(
      parcels_.begin(), parcels_.end(), int64_t{0},
      [](int64_t sum, const GradientParcel& parcel) { return sum + parcel.parameter.numel(); });
  const auto is_large = [&](size_t i) {
    return parcels_[i].parameter.numel() > total / (2 * group_.size());
  };
  std::vector<size_t> order(parcels_.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (!is_large(a) || !is_large(b)) return is_large(a) && !is_large(b);
    return parcels_[a].parameter.numel() > parcels_[b].parameter.numel();
  });
  std::vector<int64_t> load(group_.size(), 0);
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(load);
    parcels_[i].owner = static_cast<int>(least - load.begin());
    *least += parcels_[i].parameter.numel();
  }
}

// A message takes as many values from the queue of each owner, once three quarters of the owners
// have that many. What is left at the end, where the embedding's gradient arrives, may be for few.
void RankGradients::make_buckets(const std::vector<size_t>& order) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  const int64_t share_bytes = std::max(options_.bucket_bytes / group_.size(),
                                       std::min(options_.bucket_bytes, kSmallestShare));
  const int64_t share = std::max<int64_t>(1, share_bytes / kValueBytes);
  in_flight_.clear();
  buckets_.clear();
  std::vector<PartQueue> queues(group_.size());
  const auto send = [&](int64_t most_values) {
    std::vector<ParcelPart> parts;
    for (PartQueue& queue : queues) queue.take(most_values, buckets_.size(), parts);
    buckets_.emplace_back(parts, group_);
  };
  const auto has_share = [&](const PartQueue& queue) { return queue.num_values() >= share; };
  for (const size_t i : order) {
    queues[parcels_[i].owner].add(parcels_[i]);
    while (4 * std::ranges::count_if(queues, has_share) >= 3 * std::ssize(queues)) send(share);
  }
  while (const auto num_left = std::ranges::count(queues, false, &PartQueue::is_empty))
    send(std::max(share, options_.bucket_bytes / kValueBytes / num_left));
}

std::vector<ParameterGroup> RankGradients::updated_groups() const {
  return options_.zero_stage == 0 ? groups_ : owned_groups();
}

std::vector<ParameterGroup> RankGradients::owned_groups() const {
  std::vector<ParameterGroup> mine;
  for (const ParameterGroup& group : groups_)
    mine.push_back({group.name, group.learning_rate, group.weight_decay, {}, {}});
  for (size_t p = 0; p < parcels_.size(); ++p) {
    if (parcels_[p].owner != group_.rank()) continue;
    const auto [g, i] = places_[p];
    mine[g].names.push_back(groups_[g].names[i]);
    mine[g].parameters.push_back(parcels_[p].parameter);
  }
  return mine;
}

void RankGradients::begin(const std::vector<bool>& is_trained) {
  std::vector<int64_t> rows(group_.size(), 0);
  rows[group_.rank()] = std::ssize(is_trained);
  group_.all_reduce(rows);

  row_ = round_ = 0;
  num_launched_ = 0;
  num_rows_ = *std::ranges::max_element(rows);
  num_rounds_ = options_.exact_ranks ? num_rows_ : 1;
  if (options_.meet) num_rounds_ = 0;
  last_trained_row_ = std::ssize(is_trained) - 1;
  while (last_trained_row_ >= 0 && !is_trained[last_trained_row_]) --last_trained_row_;
}

void RankGradients::take_gradient(size_t parcel_idx) {
  if (!knows_order_) arrivals_.push_back(parcel_idx);
  GradientParcel& parcel = parcels_[parcel_idx];
  add_own(parcel);
  if (!sends_in_row()) return;
  for (size_t b = parcel.first_bucket; b < parcel.end_bucket; ++b) buckets_[b].complete(parcel);
  // Every rank sends in the same order: a full bucket waits for the ones before it.
  for (; num_launched_ < buckets_.size() && buckets_[num_launched_].is_complete(); ++num_launched_)
    launch(buckets_[num_launched_]);
}

// Moves the parameter's .grad to this rank's gradients of the round, once the previous round is in
// the sums.
void RankGradients::add_own(GradientParcel& parcel) {
  const at::Tensor grad = std::exchange(parcel.parameter.mutable_grad(), at::Tensor());
  if (!grad.defined()) return;
  const at::NoGradGuard no_grad;
  for (size_t b = parcel.first_bucket; b < parcel.end_bucket; ++b) buckets_[b].settle();
  if (parcel.own.defined()) {
    parcel.own.add_(grad);
  } else {
    parcel.own = grad.to(at::kFloat).contiguous();
  }
}

void RankGradients::launch(GradientBucket& bucket) {
  for (; in_flight_.size() >= kMostInFlight; in_flight_.pop_front()) in_flight_.front()->settle();
  bucket.launch();
  in_flight_.push_back(&bucket);
}

void RankGradients::end_row() {
  if (options_.meet) {
    if (options_.exact_ranks) meet();
  } else if (ends_round()) {
    end_round();
  }
  if (row_ == last_trained_row_) group_.drain();
  ++row_;
  count_interrupt_check();  // shows the watchdog that this rank is not stuck
}

void RankGradients::end_round() {
  for (; num_launched_ < buckets_.size(); ++num_launched_) launch(buckets_[num_launched_]);
  num_launched_ = 0;
  ++round_;
}

// Starts a round with the other ranks.
void RankGradients::meet() {
  options_.meet();
  ++num_rounds_;
  end_round();
}

double RankGradients::finish(double max_norm) {
  if (options_.meet) {
    for (const int64_t all = options_.exact_ranks ? num_rows_ : 1; round_ < all;) meet();
  }
  while (round_ < num_rounds_) end_round();
  for (GradientBucket& bucket : buckets_) bucket.settle();
  group_.drain();
  for (GradientParcel& parcel : parcels_)
    parcel.parameter.mutable_grad() = std::exchange(parcel.sum, at::Tensor());
  const double norm = clip(max_norm);
  if (!knows_order_) learn_order();  // makes other buckets
  return norm;
}

// Uses rank 0's order, once it has trained on a row; parameters without a gradient there come last.
void RankGradients::learn_order() {
  arrivals_ = from_wire<std::vector<int64_t>>(group_.broadcast(to_wire(arrivals_)));
  if (arrivals_.empty()) return;

  std::vector<size_t> order;
  std::vector<bool> is_listed(parcels_.size(), false);
  const auto append = [&](size_t i) {
    if (!is_listed[i]) order.push_back(i);
    is_listed[i] = true;
  };
  for (const int64_t i : arrivals_) append(i);
  for (size_t i = parcels_.size(); i-- > 0;) append(i);

  make_buckets(order);
  arrivals_.clear();
  knows_order_ = true;
}

// Norms of this rank's sums by parcel, in one transfer; −1 for a parcel without a gradient on any
// rank, 0 for those of other ranks. On a device the sum of absent gradients is dropped here.
std::vector<double> RankGradients::owned_norms() {
  const at::NoGradGuard no_grad;
  std::vector<GradientParcel*> owned;
  std::vector<at::Tensor> values;  // norms, then counts of gradients
  for (GradientParcel& parcel : parcels_) {
    if (parcel.owner != group_.rank() || !parcel.parameter.grad().defined()) continue;
    owned.push_back(&parcel);
    values.push_back(gradient_norm(parcel.parameter.grad()).view({1}));
  }
  std::vector<GradientParcel*> counted;
  for (GradientBucket& bucket : buckets_) {
    for (auto& [parcel, count] : bucket.take_counts()) {
      counted.push_back(parcel);
      values.push_back(count);
    }
  }
  std::vector<double> norms;
  for (const GradientParcel& parcel : parcels_)
    norms.push_back(parcel.owner == group_.rank() ? -1.0 : 0.0);
  if (values.empty()) return norms;
  const at::Tensor on_host = at::cat(values).to(at::kCPU, at::kDouble);
  const double* value = on_host.const_data_ptr<double>();
  for (const GradientParcel* parcel : owned) norms[parcel - parcels_.data()] = *value++;
  for (GradientParcel* parcel : counted) {
    if (*value++ > 0) continue;
    norms[parcel - parcels_.data()] = -1.0;
    parcel->parameter.mutable_grad().reset();
  }
  return norms;
}

double RankGradients::clip(double max_norm) {
  std::vector<double> norms = owned_norms();
  group_.all_reduce(norms);

  std::vector<float> used;
  std::vector<at::Tensor> grads;
  for (size_t i = 0; i < parcels_.size(); ++i) {
    GradientParcel& parcel = parcels_[i];
    parcel.has_gradient = !(norms[i] < 0);
    if (parcel.has_gradient) used.push_back(static_cast<float>(norms[i]));  // NaN is kept
    if (parcel.owner == group_.rank() && parcel.parameter.grad().defined())
      grads.push_back(parcel.parameter.grad());
  }
  return used.empty() ? 0.0 : clip_to_norm(at::tensor(used), grads, max_norm);
}

void RankGradients::update(const std::function<void()>& step) {
  if (options_.zero_stage == 0) {
    share([](GradientParcel& parcel) { return parcel.parameter.grad(); },
          [](GradientParcel& parcel) {
            at::Tensor& grad = parcel.parameter.mutable_grad();
            if (!grad.defined())
              grad = at::empty_like(parcel.parameter.detach(), at::TensorOptions(at::kFloat),
                                    at::MemoryFormat::Contiguous);
            return grad;
          },
          false);
    step();
    return;
  }
  step();
  const auto parameter = [](GradientParcel& parcel) { return parcel.parameter.detach(); };
  share(parameter, parameter, /*may_be_bfloat16=*/true);
}

// The barrier ends all ranks if one has failed before: either all share or none.
void RankGradients::share(const GradientBucket::Values& values,
                          const GradientBucket::Values& targets, bool may_be_bfloat16) {
  group_.barrier();
  for (size_t i = 0; i < buckets_.size() + kMostInFlight - 1; ++i) {
    if (i < buckets_.size()) buckets_[i].start_sharing(values, may_be_bfloat16);
    if (i + 1 >= kMostInFlight) buckets_[i + 1 - kMostInFlight].finish_sharing(targets);
  }
  group_.drain();
}

void RankGradients::discard() {
  try {
    for (; round_ < num_rounds_; end_round()) {
      for (size_t i = num_launched_; i < buckets_.size(); ++i) buckets_[i].discard();
    }
    for (GradientBucket& bucket : buckets_) bucket.discard();
  } catch (const std::exception&) {
    // A lost connection; reported by the exception that ends the step, or by the next call.
    num_rounds_ = 0;
    group_.leave();
  }
  in_flight_.clear();
  for (const GradientParcel& parcel : parcels_) parcel.parameter.mutable_grad().reset();
}

std::optional<std::vector<ScaledLoss>> RankGradients::gather_losses(std::vector<ScaledLoss> own) {
  std::vector<std::vector<ScaledLoss>> by_rank = gather(group_, own);
  if (group_.rank() != 0) return std::nullopt;
  return in_window_order(std::move(by_rank));
}

}  // namespace rematch
