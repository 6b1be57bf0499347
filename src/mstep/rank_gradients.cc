#include "mstep/rank_gradients.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>

#include "base/interrupt.h"
#include "ranks/gather.h"

namespace rematch {

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

RankGradients::RankGradients(std::vector<ParameterGroup> groups, Group& group, int zero_stage,
                             int64_t bucket_bytes)
    : groups_(std::move(groups)),
      group_(group),
      zero_stage_(zero_stage),
      bucket_bytes_(bucket_bytes) {
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

// Largest parameter first, each to the rank with the fewest values so far; the same on every rank.
void RankGradients::assign_owners() {
  std::vector<size_t> order(parcels_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return parcels_[a].parameter.numel() > parcels_[b].parameter.numel();
  });
  std::vector<int64_t> load(static_cast<size_t>(group_.size()), 0);
  for (const size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    parcels_[i].owner = static_cast<int>(least - load.begin());
    *least += parcels_[i].parameter.numel();
  }
}

void RankGradients::make_buckets(const std::vector<size_t>& order) {
  buckets_.clear();
  std::vector<GradientParcel*> parcels;
  int64_t bytes = 0;
  const auto close = [&] {
    if (!parcels.empty()) buckets_.emplace_back(std::exchange(parcels, {}), group_);
    bytes = 0;
  };
  for (const size_t i : order) {
    const auto size = static_cast<int64_t>(sizeof(float)) * parcels_[i].parameter.numel();
    if (bytes + size > bucket_bytes_) close();
    parcels_[i].bucket = buckets_.size();
    parcels.push_back(&parcels_[i]);
    bytes += size;
  }
  close();
}

std::vector<ParameterGroup> RankGradients::updated() const {
  return zero_stage_ == 0 ? groups_ : owned();
}

std::vector<ParameterGroup> RankGradients::owned() const {
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
  std::vector<int64_t> rows(static_cast<size_t>(group_.size()), 0);
  rows[static_cast<size_t>(group_.rank())] = std::ssize(is_trained);
  group_.all_reduce(rows);

  row_ = round_ = 0;
  num_launched_ = 0;
  num_rounds_ = count_rounds(*std::max_element(rows.begin(), rows.end()));
  last_trained_row_ = std::ssize(is_trained) - 1;
  while (last_trained_row_ >= 0 && !is_trained[static_cast<size_t>(last_trained_row_)])
    --last_trained_row_;
}

void RankGradients::take_gradient(size_t parcel_idx) {
  if (!knows_order_) arrivals_.push_back(static_cast<int64_t>(parcel_idx));
  GradientParcel& parcel = parcels_[parcel_idx];
  GradientBucket& bucket = buckets_[parcel.bucket];
  bucket.add(parcel);
  if (!ends_round(row_)) return;
  bucket.complete(parcel);
  // Every rank sends in the same order: a full bucket waits for the ones before it.
  for (; num_launched_ < buckets_.size() && buckets_[num_launched_].is_complete(); ++num_launched_)
    buckets_[num_launched_].launch();
}

void RankGradients::end_row() {
  if (ends_round(row_)) end_round();
  ++row_;
  count_interrupt_check();  // shows the watchdog that this rank is not stuck
}

void RankGradients::end_round() {
  for (; num_launched_ < buckets_.size(); ++num_launched_) buckets_[num_launched_].launch();
  num_launched_ = 0;
  ++round_;
}

double RankGradients::finish(double max_norm) {
  while (round_ < num_rounds_) end_round();
  for (GradientBucket& bucket : buckets_) bucket.settle();
  for (GradientParcel& parcel : parcels_)
    parcel.parameter.mutable_grad() = std::exchange(parcel.sum, at::Tensor());
  if (!knows_order_) learn_order();
  return clip(max_norm);
}

// Uses rank 0's order, once it has trained on a row; parameters without a gradient there come last.
void RankGradients::learn_order() {
  std::string bytes(arrivals_.size() * sizeof(int64_t), '\0');
  std::memcpy(bytes.data(), arrivals_.data(), bytes.size());
  bytes = group_.broadcast(std::move(bytes));
  arrivals_.resize(bytes.size() / sizeof(int64_t));
  if (arrivals_.empty()) return;
  std::memcpy(arrivals_.data(), bytes.data(), bytes.size());

  std::vector<size_t> order;
  std::vector<bool> is_listed(parcels_.size(), false);
  const auto append = [&](size_t i) {
    if (!is_listed[i]) order.push_back(i);
    is_listed[i] = true;
  };
  for (const int64_t i : arrivals_) append(static_cast<size_t>(i));
  for (size_t i = parcels_.size(); i-- > 0;) append(i);

  make_buckets(order);
  arrivals_.clear();
  knows_order_ = true;
}

double RankGradients::clip(double max_norm) {
  // Each owner knows the norms of its parameters; −1 is a parameter without a gradient.
  std::vector<double> norms(parcels_.size(), 0.0);
  std::vector<at::Tensor> grads;
  for (size_t i = 0; i < parcels_.size(); ++i) {
    const GradientParcel& parcel = parcels_[i];
    if (parcel.owner != group_.rank()) continue;
    const at::Tensor& grad = parcel.parameter.grad();
    norms[i] = grad.defined() ? gradient_norm(grad).item<double>() : -1.0;
    if (grad.defined()) grads.push_back(grad);
  }
  group_.all_reduce(norms);

  std::vector<float> used;
  for (const double norm : norms) {
    if (!(norm < 0)) used.push_back(static_cast<float>(norm));  // NaN is kept
  }
  if (used.empty()) return 0.0;
  return clip_to_norm(at::tensor(used).to(parcels_.front().parameter.device()), grads, max_norm);
}

void RankGradients::update(const std::function<void()>& step) {
  if (zero_stage_ == 0) {
    share([](GradientParcel& parcel) { return parcel.parameter.grad(); },
          [](GradientParcel& parcel, const at::Tensor& grad) {
            parcel.parameter.mutable_grad() =
                grad.defined() ? grad.to(parcel.parameter.device()) : at::Tensor();
          });
    step();
    return;
  }
  step();
  // Messages are float32, which represents bfloat16 values exactly.
  share([](GradientParcel& parcel) { return parcel.parameter.detach(); },
        [](GradientParcel& parcel, const at::Tensor& values) { parcel.parameter.copy_(values); });
}

// The barrier ends all ranks if one has failed before: either all share or none. All chunks are in
// flight before the first wait.
void RankGradients::share(const GradientBucket::Values& values,
                          const GradientBucket::Receive& receive) {
  group_.barrier();
  for (GradientBucket& bucket : buckets_) bucket.start_sharing(values);
  for (GradientBucket& bucket : buckets_) bucket.finish_sharing(receive);
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
  for (const GradientParcel& parcel : parcels_) parcel.parameter.mutable_grad().reset();
}

std::optional<std::vector<ScaledLoss>> RankGradients::gather_losses(std::vector<ScaledLoss> own) {
  std::vector<std::vector<ScaledLoss>> by_rank = gather(group_, own);
  if (group_.rank() != 0) return std::nullopt;
  return in_window_order(std::move(by_rank));
}

}  // namespace rematch
