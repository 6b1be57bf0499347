#include "mstep/gradient_bucket.h"

#include <c10/core/GradMode.h>

#include <numeric>
#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

at::Tensor view_at(const at::Tensor& flat, int64_t begin, const at::Tensor& as) {
  return flat.narrow(0, begin, as.numel()).view(as.sizes());
}

// A chunk is one placeholder value, a flag for each of the owner's parcels (1 if it has a tensor),
// and their values.
at::Tensor flags_at(const at::Tensor& flat, int64_t begin, size_t count) {
  return flat.narrow(0, begin + 1, static_cast<int64_t>(count));
}

std::vector<float> flags_in(const at::Tensor& flat, int64_t begin, size_t count) {
  const at::Tensor host = flags_at(flat, begin, count).cpu();
  const auto* values = host.const_data_ptr<float>();
  return {values, values + count};
}

void set_flags(const at::Tensor& flat, int64_t begin, const std::vector<float>& flags) {
  if (!flags.empty()) flags_at(flat, begin, flags.size()).copy_(at::tensor(flags));
}

// @param may_keep  the gradient is not part of a message, so it can become the sum itself
void add_to_sum(GradientParcel& parcel, const at::Tensor& gradient, bool may_keep) {
  if (parcel.sum.defined()) {
    parcel.sum.add_(gradient.to(parcel.sum.device()));
  } else if (may_keep) {
    parcel.sum = gradient;
  } else {
    parcel.sum = at::empty_like(parcel.parameter, at::kFloat).copy_(gradient);
  }
}

std::vector<int64_t> offsets(const std::vector<int64_t>& counts) {
  std::vector<int64_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), int64_t{0});
  return begins;
}

}  // namespace

GradientBucket::GradientBucket(std::vector<GradientParcel*> parcels, Group& group)
    : parcels_(std::move(parcels)), by_owner_(static_cast<size_t>(group.size())), group_(group) {
  for (GradientParcel* parcel : parcels_)
    by_owner_[static_cast<size_t>(parcel->owner)].push_back(parcel);
  for (const std::vector<GradientParcel*>& theirs : by_owner_) {
    int64_t size = 1 + std::ssize(theirs);  // a chunk is never empty
    for (size_t i = 0; i < theirs.size(); ++i) {
      theirs[i]->index = i;
      theirs[i]->values_at = size;
      size += theirs[i]->parameter.numel();
    }
    chunk_sizes_.push_back(size);
  }
  const auto rank = static_cast<size_t>(group.rank());
  send_counts_ = chunk_sizes_;
  receive_counts_.assign(chunk_sizes_.size(), chunk_sizes_[rank]);
  send_counts_[rank] = receive_counts_[rank] = 1;
  send_begins_ = offsets(send_counts_);
  receive_begins_ = offsets(receive_counts_);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(group.message_device());
  send_ = at::zeros({send_begins_.back() + send_counts_.back()}, options);
  receive_ = at::zeros({receive_begins_.back() + receive_counts_.back()}, options);
}

at::Tensor GradientBucket::slot_in_message(const GradientParcel& parcel) const {
  const int64_t begin = send_begins_[static_cast<size_t>(parcel.owner)];
  return view_at(send_, begin + parcel.values_at, parcel.parameter);
}

void GradientBucket::add(GradientParcel& parcel) {
  const at::Tensor grad = std::exchange(parcel.parameter.mutable_grad(), at::Tensor());
  if (!grad.defined()) return;
  const at::NoGradGuard no_grad;
  settle();
  if (parcel.own.defined()) {
    parcel.own.add_(grad);
  } else if (is_own(parcel.owner) || grad.device() != send_.device()) {
    parcel.own = grad.to(at::kFloat);
  } else {
    parcel.own = slot_in_message(parcel).copy_(grad);
  }
}

void GradientBucket::complete(GradientParcel& parcel) {
  REMATCH_CHECK(!std::exchange(parcel.is_complete, true), "a parameter has one gradient per row");
  ++num_complete_;
}

void GradientBucket::launch() {
  const at::NoGradGuard no_grad;
  settle();
  for (int owner = 0; owner < group_.size(); ++owner) {
    if (is_own(owner)) continue;
    std::vector<float> flags;
    for (GradientParcel* parcel : by_owner_[static_cast<size_t>(owner)]) {
      const at::Tensor gradient = std::exchange(parcel->own, at::Tensor());
      flags.push_back(gradient.defined() ? 1.0F : 0.0F);
      if (gradient.defined() && !gradient.is_alias_of(send_))
        slot_in_message(*parcel).copy_(gradient);
    }
    set_flags(send_, send_begins_[static_cast<size_t>(owner)], flags);
  }
  for (GradientParcel* parcel : parcels_) parcel->is_complete = false;
  num_complete_ = 0;
  wait_ = group_.exchange(send_, send_counts_, receive_, receive_counts_);
}

void GradientBucket::settle() {
  if (!wait_) return;
  std::exchange(wait_, nullptr)();
  const at::NoGradGuard no_grad;
  const std::vector<GradientParcel*>& mine = by_owner_[static_cast<size_t>(group_.rank())];
  for (int rank = 0; rank < group_.size(); ++rank) {
    const int64_t begin = receive_begins_[static_cast<size_t>(rank)];
    const auto flags = is_own(rank) ? std::vector<float>() : flags_in(receive_, begin, mine.size());
    for (GradientParcel* parcel : mine) {
      at::Tensor gradient;
      if (is_own(rank)) {
        gradient = std::exchange(parcel->own, at::Tensor());
      } else if (flags[parcel->index] != 0) {
        gradient = view_at(receive_, begin + parcel->values_at, parcel->parameter);
      }
      if (gradient.defined()) add_to_sum(*parcel, gradient, is_own(rank));
    }
  }
}

void GradientBucket::discard() {
  for (GradientParcel* parcel : parcels_) {
    parcel->is_complete = false;
    parcel->own.reset();
    parcel->sum.reset();
  }
  num_complete_ = 0;
  if (wait_) std::exchange(wait_, nullptr)();
  for (std::function<void()>& wait : waits_for_owners_) {
    if (wait) std::exchange(wait, nullptr)();
  }
}

// No round is in flight, so its buffers are free: the other ranks' chunks use the send buffer, this
// rank's chunk the receive buffer.
at::Tensor GradientBucket::chunk_to_share(int owner) const {
  const auto idx = static_cast<size_t>(owner);
  return is_own(owner) ? receive_.narrow(0, 0, chunk_sizes_[idx])
                       : send_.narrow(0, send_begins_[idx], chunk_sizes_[idx]);
}

void GradientBucket::start_sharing(const Values& values) {
  const at::NoGradGuard no_grad;
  waits_for_owners_.clear();
  for (int owner = 0; owner < group_.size(); ++owner) {
    const std::vector<GradientParcel*>& parcels = by_owner_[static_cast<size_t>(owner)];
    waits_for_owners_.emplace_back();
    if (parcels.empty()) continue;
    const at::Tensor flat = chunk_to_share(owner);
    if (is_own(owner)) {
      std::vector<float> flags;
      for (GradientParcel* parcel : parcels) {
        const at::Tensor tensor = values(*parcel);
        flags.push_back(tensor.defined() ? 1.0F : 0.0F);
        if (tensor.defined()) view_at(flat, parcel->values_at, tensor).copy_(tensor);
      }
      set_flags(flat, 0, flags);
    }
    waits_for_owners_.back() = group_.start_broadcast(flat, owner);
  }
}

void GradientBucket::finish_sharing(const Receive& receive) {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < group_.size(); ++owner) {
    const std::vector<GradientParcel*>& parcels = by_owner_[static_cast<size_t>(owner)];
    if (parcels.empty()) continue;
    std::exchange(waits_for_owners_[static_cast<size_t>(owner)], nullptr)();
    if (is_own(owner)) continue;
    const at::Tensor flat = chunk_to_share(owner);
    const std::vector<float> flags = flags_in(flat, 0, parcels.size());
    for (GradientParcel* parcel : parcels) {
      receive(*parcel, flags[parcel->index] != 0
                           ? view_at(flat, parcel->values_at, parcel->parameter)
                           : at::Tensor());
    }
  }
}

}  // namespace rematch
