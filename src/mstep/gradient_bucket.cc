#include "mstep/gradient_bucket.h"

#include <c10/core/GradMode.h>

#include <numeric>
#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

at::Tensor shaped(const at::Tensor& flat, int64_t begin, const at::Tensor& as) {
  return flat.narrow(0, begin, as.numel()).view(as.sizes());
}

/// Of each of an owner's parcels, whether it has a tensor; they lie at the beginning of its chunk,
/// behind one value that is always there.
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

std::vector<int64_t> begins_of(const std::vector<int64_t>& counts) {
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
    given_.emplace_back(theirs.size(), 0.0F);
  }
  const auto rank = static_cast<size_t>(group.rank());
  send_counts_ = chunk_sizes_;
  receive_counts_.assign(chunk_sizes_.size(), chunk_sizes_[rank]);
  send_counts_[rank] = receive_counts_[rank] = 1;
  send_begins_ = begins_of(send_counts_);
  receive_begins_ = begins_of(receive_counts_);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(group.message_device());
  send_ = at::zeros({send_begins_.back() + send_counts_.back()}, options);
  receive_ = at::zeros({receive_begins_.back() + receive_counts_.back()}, options);
}

void GradientBucket::give(GradientParcel& parcel) {
  REMATCH_CHECK(!std::exchange(parcel.is_given, true), "a parameter has one gradient in a row");
  const at::NoGradGuard no_grad;
  if (num_given_++ == 0) settle();
  at::Tensor& grad = parcel.parameter.mutable_grad();
  if (!grad.defined()) return;
  if (parcel.owner == group_.rank()) {
    parcel.row = grad.to(group_.message_device(), at::kFloat);
  } else {
    const auto owner = static_cast<size_t>(parcel.owner);
    given_[owner][parcel.index] = 1.0F;
    shaped(send_, send_begins_[owner] + parcel.values_at, grad).copy_(grad);
  }
  grad.reset();
}

void GradientBucket::launch() {
  for (GradientParcel* parcel : parcels_) {
    if (!parcel->is_given) give(*parcel);
  }
  for (size_t owner = 0; owner < given_.size(); ++owner) {
    if (static_cast<int>(owner) == group_.rank()) continue;
    set_flags(send_, send_begins_[owner], given_[owner]);
    given_[owner].assign(given_[owner].size(), 0.0F);
  }
  for (GradientParcel* parcel : parcels_) parcel->is_given = false;
  num_given_ = 0;
  wait_ = group_.exchange(send_, send_counts_, receive_, receive_counts_);
}

void GradientBucket::settle() {
  if (!wait_) return;
  std::exchange(wait_, nullptr)();
  const at::NoGradGuard no_grad;
  const std::vector<GradientParcel*>& mine = by_owner_[static_cast<size_t>(group_.rank())];
  std::vector<std::vector<float>> flags(receive_begins_.size());  // none of this rank's own
  for (size_t rank = 0; rank < flags.size(); ++rank) {
    if (static_cast<int>(rank) != group_.rank())
      flags[rank] = flags_in(receive_, receive_begins_[rank], mine.size());
  }
  for (GradientParcel* parcel : mine) {
    std::vector<at::Tensor> parts(flags.size());
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      const bool has_part = !flags[rank].empty() && flags[rank][parcel->index] != 0;
      if (has_part)
        parts[rank] =
            shaped(receive_, receive_begins_[rank] + parcel->values_at, parcel->parameter);
    }
    parcel->sum = sum_with_turn(*parcel, parts);
  }
}

/// A parcel's sum and the gradients of a turn, added in rank order; undefined where there are none.
/// Takes this rank's own from the parcel, and makes it the sum if nothing comes before it, or one
/// gradient alone: a + b is b + a to the bit.
/// @param parts  of the other ranks, parts of receive_
at::Tensor GradientBucket::sum_with_turn(GradientParcel& parcel,
                                         const std::vector<at::Tensor>& parts) const {
  at::Tensor sum = std::exchange(parcel.sum, at::Tensor());
  bool is_received = false;  // the sum is still a part of receive_
  for (int rank = 0; rank < group_.size(); ++rank) {
    const bool is_own = rank == group_.rank();
    const at::Tensor part =
        is_own ? std::exchange(parcel.row, at::Tensor()) : parts[static_cast<size_t>(rank)];
    if (!part.defined()) continue;
    if (!sum.defined()) {
      sum = part;
      is_received = !is_own;
    } else if (!is_received) {
      sum.add_(part.to(sum.device()));
    } else {
      sum = is_own ? part.add_(sum) : sum.add(part);
      is_received = false;
    }
  }
  const bool is_elsewhere = sum.defined() && sum.device() != parcel.parameter.device();
  return is_received || is_elsewhere
             ? at::empty_like(parcel.parameter, at::TensorOptions().dtype(at::kFloat)).copy_(sum)
             : sum;
}

void GradientBucket::discard() {
  if (wait_) std::exchange(wait_, nullptr)();
  for (std::vector<float>& flags : given_) flags.assign(flags.size(), 0.0F);
  for (GradientParcel* parcel : parcels_) {
    parcel->is_given = false;
    parcel->row.reset();
    parcel->sum.reset();
  }
  num_given_ = 0;
}

// Between two turns nothing is on its way: the chunks of the others lie where gradients leave from,
// this rank's own where they arrive.
at::Tensor GradientBucket::chunk_to_share(int owner) const {
  const auto idx = static_cast<size_t>(owner);
  return owner == group_.rank() ? receive_.narrow(0, 0, chunk_sizes_[idx])
                                : send_.narrow(0, send_begins_[idx], chunk_sizes_[idx]);
}

void GradientBucket::start_sharing(const Of& of) {
  const at::NoGradGuard no_grad;
  waits_for_owners_.clear();
  for (int owner = 0; owner < group_.size(); ++owner) {
    const std::vector<GradientParcel*>& parcels = by_owner_[static_cast<size_t>(owner)];
    waits_for_owners_.emplace_back();
    if (parcels.empty()) continue;
    const at::Tensor flat = chunk_to_share(owner);
    if (owner == group_.rank()) {
      std::vector<float> flags;
      for (GradientParcel* parcel : parcels) {
        const at::Tensor values = of(*parcel);
        flags.push_back(values.defined() ? 1.0F : 0.0F);
        if (values.defined()) shaped(flat, parcel->values_at, values).copy_(values);
      }
      set_flags(flat, 0, flags);
    }
    waits_for_owners_.back() = group_.start_broadcast(flat, owner);
  }
}

void GradientBucket::finish_sharing(const Take& take) {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < group_.size(); ++owner) {
    const std::vector<GradientParcel*>& parcels = by_owner_[static_cast<size_t>(owner)];
    if (parcels.empty()) continue;
    std::exchange(waits_for_owners_[static_cast<size_t>(owner)], nullptr)();
    if (owner == group_.rank()) continue;
    const at::Tensor flat = chunk_to_share(owner);
    const std::vector<float> flags = flags_in(flat, 0, parcels.size());
    for (GradientParcel* parcel : parcels) {
      take(*parcel, flags[parcel->index] != 0 ? shaped(flat, parcel->values_at, parcel->parameter)
                                              : at::Tensor());
    }
  }
}

}  // namespace rematch
