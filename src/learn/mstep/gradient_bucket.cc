#include "learn/mstep/gradient_bucket.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace rematch {
namespace {

// A chunk is one placeholder value, a flag for each of the adder's parts (1 if it has a gradient),
// and their values.
at::Tensor flags_at(const at::Tensor& flat, int64_t begin, size_t count) {
  return flat.narrow(0, begin + 1, count);
}

std::vector<int64_t> offsets(const std::vector<int64_t>& counts) {
  std::vector<int64_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), int64_t{0});
  return begins;
}

}  // namespace

GradientBucket::GradientBucket(const std::vector<ParcelPart>& parts, Group& group)
    : by_adder_(static_cast<size_t>(group.size())),
      by_owner_(by_adder_.size()),
      group_(&group),
      on_device_(!group.message_device().is_cpu()) {
  for (const ParcelPart& part : parts) {
    parts_.emplace_back();
    static_cast<ParcelPart&>(parts_.back()) = part;
  }
  for (Part& part : parts_) {
    by_adder_[part.adder].push_back(&part);
    by_owner_[part.parcel->owner].push_back(&part);
  }
  for (const std::vector<Part*>& theirs : by_adder_) {
    int64_t size = 1 + std::ssize(theirs);  // a chunk is never empty
    for (size_t i = 0; i < theirs.size(); ++i) {
      theirs[i]->index = i;
      theirs[i]->values_at = size;
      size += theirs[i]->count;
    }
    chunk_sizes_.push_back(size);
  }
  const auto rank = static_cast<size_t>(group.rank());
  send_counts_ = chunk_sizes_;
  receive_counts_.assign(chunk_sizes_.size(), chunk_sizes_[rank]);
  send_counts_[rank] = receive_counts_[rank] = 1;
  send_begins_ = offsets(send_counts_);
  receive_begins_ = offsets(receive_counts_);
}

at::TensorOptions GradientBucket::message_options() const {
  return at::TensorOptions().dtype(at::kFloat).device(group_->message_device());
}

// The place of its sum on this rank, which is the adder or, for a part that it gets, the owner.
at::Tensor GradientBucket::Part::sum(bool at_owner) {
  const at::TensorOptions options = parcel->parameter.options().dtype(at::kFloat);
  if (is_lent() && !at_owner) {
    if (!lent_sum.defined()) lent_sum = at::empty({count}, options);
    return lent_sum;
  }
  if (!parcel->sum.defined()) parcel->sum = at::empty(parcel->parameter.sizes(), options);
  return of(parcel->sum);
}

void GradientBucket::complete(const GradientParcel& parcel) {
  for (Part& part : parts_) {
    if (part.parcel != &parcel) continue;
    REMATCH_CHECK(!std::exchange(part.is_complete, true), "a parameter has one gradient per row");
    ++num_complete_;
  }
}

void GradientBucket::use_own(Part& part) {
  GradientParcel& parcel = *part.parcel;
  parcel.num_used += part.count;
  if (parcel.num_used < parcel.parameter.numel()) return;
  parcel.own.reset();
  parcel.num_used = 0;
}

// Gradients of other ranks' parts move into the message; absent ones are zeros with flag 0.
void GradientBucket::fill_message() {
  send_ = at::zeros({send_begins_.back() + send_counts_.back()}, message_options());
  receive_ = at::zeros({receive_begins_.back() + receive_counts_.back()}, message_options());
  for (int adder = 0; adder < group_->size(); ++adder) {
    if (is_own(adder)) continue;
    const int64_t begin = send_begins_[adder];
    std::vector<Part*>& theirs = by_adder_[adder];
    for (Part* part : theirs) {
      const at::Tensor gradient = part->parcel->own;
      use_own(*part);
      if (!gradient.defined()) continue;
      flags_at(send_, begin, theirs.size()).narrow(0, part->index, 1).fill_(1);
      send_.narrow(0, begin + part->values_at, part->count).copy_(part->of(gradient));
    }
  }
}

void GradientBucket::launch() {
  const at::NoGradGuard no_grad;
  settle();
  fill_message();
  for (Part& part : parts_) part.is_complete = false;
  num_complete_ = 0;
  wait_ = group_->exchange(send_, send_counts_, receive_, receive_counts_);
}

// @param may_keep  the gradient is not part of a message, so it can become the sum itself
void GradientBucket::add_to_sum(Part& part, const at::Tensor& gradient, bool may_keep) {
  GradientParcel& parcel = *part.parcel;
  if (!part.has_sum && may_keep && part.is_whole() && !part.is_lent()) {
    parcel.sum = gradient.view(parcel.parameter.sizes());
  } else {
    const at::Tensor values = part.sum();
    part.has_sum ? values.add_(gradient.to(values.device())) : values.copy_(gradient);
  }
  part.has_sum = true;
}

// Adds what a rank sent to this one. The host does not read flags on a device, which it would have
// to wait for: absent gradients are zeros there, and the flags are summed.
void GradientBucket::add_round(int rank) {
  std::vector<Part*>& mine = by_adder_[group_->rank()];
  const int64_t begin = receive_begins_[rank];
  const at::Tensor flags =
      is_own(rank) || mine.empty() ? at::Tensor() : flags_at(receive_, begin, mine.size());
  for (Part* part : mine) {
    if (is_own(rank)) {
      const at::Tensor own = part->parcel->own;
      use_own(*part);
      if (!own.defined()) continue;
      add_to_sum(*part, part->of(own), /*may_keep=*/true);
      if (on_device_) {
        part->num_gradients = part->num_gradients.defined() ? part->num_gradients.add_(1)
                                                            : at::ones({1}, message_options());
      }
      continue;
    }
    const at::Tensor flag = flags.narrow(0, part->index, 1);
    if (!on_device_ && *flag.const_data_ptr<float>() == 0) continue;
    add_to_sum(*part, receive_.narrow(0, begin + part->values_at, part->count), false);
    if (on_device_)
      part->num_gradients =
          part->num_gradients.defined() ? part->num_gradients.add_(flag) : flag.clone();
  }
}

void GradientBucket::settle() {
  if (!wait_) return;
  std::exchange(wait_, nullptr)();
  const at::NoGradGuard no_grad;
  for (int rank = 0; rank < group_->size(); ++rank) add_round(rank);
  send_.reset();
  receive_.reset();
}

// Each lent part is a count of gradients and their sum. Chunks are never empty.
void GradientBucket::collect() {
  if (std::ranges::none_of(parts_, &ParcelPart::is_lent)) return;
  const at::NoGradGuard no_grad;
  std::vector<int64_t> send_counts(by_owner_.size(), 1), receive_counts(by_owner_.size(), 1);
  for (const Part& part : parts_) {
    if (!part.is_lent()) continue;
    if (is_own(part.adder)) send_counts[part.parcel->owner] += 1 + part.count;
    if (is_own(part.parcel->owner)) receive_counts[part.adder] += 1 + part.count;
  }
  const auto make = [&](const std::vector<int64_t>& counts) {
    return at::zeros({std::accumulate(counts.begin(), counts.end(), int64_t{0})},
                     message_options());
  };
  const at::Tensor send = make(send_counts), receive = make(receive_counts);
  std::vector<int64_t> next = offsets(send_counts);
  for (Part& part : parts_) {
    if (!part.is_lent() || !is_own(part.adder)) continue;
    const int64_t begin = next[part.parcel->owner];
    next[part.parcel->owner] += 1 + part.count;
    if (!part.has_sum) continue;
    const at::Tensor count = send.narrow(0, begin, 1);
    part.num_gradients.defined() ? count.copy_(part.num_gradients) : count.fill_(1);
    send.narrow(0, begin + 1, part.count).copy_(part.lent_sum);
    part.num_gradients.reset();
    part.lent_sum.reset();
  }
  group_->exchange(send, send_counts, receive, receive_counts)();
  next = offsets(receive_counts);
  for (Part& part : parts_) {
    if (!part.is_lent() || !is_own(part.parcel->owner)) continue;
    const at::Tensor count = receive.narrow(0, next[part.adder], 1);
    if (on_device_ || *count.const_data_ptr<float>() != 0)
      part.sum(true).copy_(receive.narrow(0, next[part.adder] + 1, part.count));
    if (on_device_) part.num_gradients = count.clone();
    next[part.adder] += 1 + part.count;
  }
}

std::vector<std::pair<GradientParcel*, at::Tensor>> GradientBucket::take_counts() {
  std::vector<std::pair<GradientParcel*, at::Tensor>> counts;
  for (Part& part : parts_) {
    part.has_sum = false;
    if (part.num_gradients.defined())
      counts.emplace_back(part.parcel, std::exchange(part.num_gradients, {}));
  }
  return counts;
}

void GradientBucket::discard() {
  for (Part& part : parts_) {
    part.is_complete = part.has_sum = false;
    part.num_gradients.reset();
    part.lent_sum.reset();
    part.parcel->own.reset();
    part.parcel->num_used = 0;
    part.parcel->sum.reset();
  }
  num_complete_ = 0;
  if (wait_) std::exchange(wait_, nullptr)();
  send_.reset();
  receive_.reset();
  for (std::function<void()>& wait : waits_for_owners_) {
    if (wait) std::exchange(wait, nullptr)();
  }
  shared_.clear();
}

void GradientBucket::start_sharing(const Values& values, bool may_be_bfloat16) {
  const at::NoGradGuard no_grad;
  waits_for_owners_.assign(by_owner_.size(), nullptr);
  shared_.assign(by_owner_.size(), {});
  for (int owner = 0; owner < group_->size(); ++owner) {
    const std::vector<Part*>& parts = by_owner_[owner];
    if (parts.empty()) continue;
    at::Tensor& flat = shared_[owner];
    const bool is_bfloat16 = may_be_bfloat16 && std::ranges::all_of(parts, [](const Part* part) {
                               return part->parcel->parameter.scalar_type() == at::kBFloat16;
                             });
    int64_t num_values = 0;
    for (const Part* part : parts) num_values += part->count;
    flat = at::zeros({1 + num_values},  // never empty
                     message_options().dtype(is_bfloat16 ? at::kBFloat16 : at::kFloat));
    for (int64_t begin = 0; const Part* part : parts) {
      if (is_own(owner) && part->parcel->has_gradient)
        flat.narrow(0, begin, part->count).copy_(part->of(values(*part->parcel)));
      begin += part->count;
    }
    waits_for_owners_[owner] = group_->start_broadcast(flat, owner);
  }
}

void GradientBucket::finish_sharing(const Values& targets) {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < group_->size(); ++owner) {
    const std::vector<Part*>& parts = by_owner_[owner];
    if (parts.empty()) continue;
    std::exchange(waits_for_owners_[owner], nullptr)();
    const at::Tensor flat = std::exchange(shared_[owner], {});
    for (int64_t begin = 0; const Part* part : parts) {
      if (!is_own(owner) && part->parcel->has_gradient)
        part->of(targets(*part->parcel)).copy_(flat.narrow(0, begin, part->count));
      begin += part->count;
    }
  }
}

}  // namespace rematch
