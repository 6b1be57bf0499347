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
  assign_owners(parcels_, group_.size());

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

void RankGradients::make_buckets(const std::vector<size_t>& order) {
  std::vector<GradientParcel*> arriving;
  for (const size_t i : order) arriving.push_back(&parcels_[i]);
  in_flight_.clear();
  buckets_.clear();
  for (const auto& parts : divide_into_messages(arriving, group_.size(), options_.bucket_bytes))
    buckets_.emplace_back(parts, group_);
  num_collected_ = buckets_.size();
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
  num_rounds_ = options_.meet ? 0 : num_all_rounds();
  num_collected_ = 0;
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

// A round begins when the one before is in the sums, which frees this rank's gradients of it.
void RankGradients::launch(GradientBucket& bucket) {
  const size_t most = num_launched_ == 0 ? 0 : kMostInFlight - 1;
  for (; in_flight_.size() > most; in_flight_.pop_front()) in_flight_.front()->settle();
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
    while (round_ < num_all_rounds()) meet();
  }
  while (round_ < num_rounds_) end_round();
  for (GradientBucket& bucket : buckets_) bucket.settle();
  collect();
  group_.drain();
  for (GradientParcel& parcel : parcels_)
    parcel.parameter.mutable_grad() = std::exchange(parcel.sum, at::Tensor());
  const double norm = clip(max_norm);
  if (!knows_order_) learn_order();  // makes other buckets
  return norm;
}

// Once all rounds have begun, so that every rank takes part, also in discard().
void RankGradients::collect() {
  if (num_rounds_ == 0 || num_rounds_ < num_all_rounds()) return;
  while (num_collected_ < buckets_.size()) buckets_[num_collected_++].collect();
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
    collect();
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
