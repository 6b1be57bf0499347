#include "mstep/gradient_turns.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace rematch {
namespace {

at::Tensor shaped(const at::Tensor& flat, int64_t begin, const at::Tensor& as) {
  return flat.narrow(0, begin, as.numel()).view(as.sizes());
}

/// Of each of an owner's parcels, whether it has a gradient; they lie at the beginning of its chunk, behind one value that is always there.
at::Tensor flags_at(const at::Tensor& flat, int64_t begin, size_t count) { return flat.narrow(0, begin + 1, static_cast<int64_t>(count)); }

std::vector<float> flags_in(const at::Tensor& flat, int64_t begin, size_t count) {
  const at::Tensor host = flags_at(flat, begin, count).cpu();
  const auto* values = host.const_data_ptr<float>();
  return {values, values + count};
}

void set_flags(const at::Tensor& flat, int64_t begin, const std::vector<float>& flags) {
  if (!flags.empty()) flags_at(flat, begin, flags.size()).copy_(at::tensor(flags));
}

}  // namespace

GradientTurns::GradientTurns(const std::vector<ParameterGroup>& groups, Group& group) : groups_(groups), group_(group) {
  for (size_t g = 0; g < groups.size(); ++g) {
    for (size_t i = 0; i < groups[g].parameters.size(); ++i) parcels_.push_back({.parameter = groups[g].parameters[i], .place = {g, i}});
  }
  assign_owners();
  const int64_t total = std::accumulate(chunk_sizes_.begin(), chunk_sizes_.end(), int64_t{0});
  send_ = at::zeros({total}, message_options());
  receive_ = at::zeros({group.size() * chunk_sizes_[static_cast<size_t>(group.rank())]}, message_options());
}

// The largest first, each to the rank that has least so far; the same on every rank.
void GradientTurns::assign_owners() {
  std::vector<size_t> order(parcels_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parcels_[a].parameter.numel() > parcels_[b].parameter.numel(); });
  std::vector<int64_t> load(static_cast<size_t>(group_.size()), 0);
  for (const size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    parcels_[i].owner = static_cast<int>(least - load.begin());
    *least += parcels_[i].parameter.numel();
  }
  for (int owner = 0; owner < group_.size(); ++owner) {
    int64_t size = 1 + std::ssize(parcels_of(owner));  // a chunk is never empty
    for (Parcel* parcel : parcels_of(owner)) {
      parcel->values_at = size;
      size += parcel->parameter.numel();
    }
    chunk_sizes_.push_back(size);
  }
}

std::vector<GradientTurns::Parcel*> GradientTurns::parcels_of(int owner) {
  std::vector<Parcel*> list;
  for (Parcel& parcel : parcels_) {
    if (parcel.owner == owner) list.push_back(&parcel);
  }
  return list;
}

std::vector<ParameterGroup> GradientTurns::owned() const {
  std::vector<ParameterGroup> mine;
  for (const ParameterGroup& group : groups_) mine.push_back({group.name, group.learning_rate, group.weight_decay, {}, {}});
  for (const Parcel& parcel : parcels_) {
    if (parcel.owner != group_.rank()) continue;
    const auto [g, i] = parcel.place;
    mine[g].names.push_back(groups_[g].names[i]);
    mine[g].parameters.push_back(parcel.parameter);
  }
  return mine;
}

void GradientTurns::give() {
  const at::NoGradGuard no_grad;
  settle();
  int64_t begin = 0;
  for (int owner = 0; owner < group_.size(); ++owner) {
    std::vector<float> flags;
    for (Parcel* parcel : parcels_of(owner)) {
      at::Tensor& grad = parcel->parameter.mutable_grad();
      flags.push_back(grad.defined() ? 1.0F : 0.0F);
      if (grad.defined()) shaped(send_, begin + parcel->values_at, grad).copy_(grad);
      grad.reset();
    }
    set_flags(send_, begin, flags);
    begin += chunk_sizes_[static_cast<size_t>(owner)];
  }
  const std::vector<int64_t> mine(static_cast<size_t>(group_.size()), chunk_sizes_[static_cast<size_t>(group_.rank())]);
  wait_ = group_.exchange(send_, chunk_sizes_, receive_, mine);
}

// Adds the turn that has arrived, in rank order.
void GradientTurns::settle() {
  if (!wait_) return;
  std::exchange(wait_, nullptr)();
  const at::NoGradGuard no_grad;
  const int64_t size = chunk_sizes_[static_cast<size_t>(group_.rank())];
  const std::vector<Parcel*> mine = parcels_of(group_.rank());
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::vector<float> flags = flags_in(receive_, rank * size, mine.size());
    for (size_t i = 0; i < mine.size(); ++i) {
      if (flags[i] == 0) continue;
      Parcel* const parcel = mine[i];
      const at::Tensor part = shaped(receive_, rank * size + parcel->values_at, parcel->parameter);
      if (parcel->sum.defined()) {
        parcel->sum.add_(part.to(parcel->sum.device()));
      } else {
        parcel->sum = at::empty_like(parcel->parameter, at::TensorOptions().dtype(at::kFloat)).copy_(part);
      }
    }
  }
}

void GradientTurns::finish() {
  settle();
  for (Parcel& parcel : parcels_) parcel.parameter.mutable_grad() = std::exchange(parcel.sum, at::Tensor());
}

void GradientTurns::discard() {
  if (wait_) std::exchange(wait_, nullptr)();
  for (Parcel& parcel : parcels_) parcel.sum.reset();
}

double GradientTurns::clip(double max_norm) {
  // Each owner knows the norms of what it owns; −1 stands for a parameter without a gradient.
  std::vector<double> norms(parcels_.size(), 0.0);
  std::vector<at::Tensor> grads;
  for (size_t i = 0; i < parcels_.size(); ++i) {
    const Parcel& parcel = parcels_[i];
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

// One flat message from each owner.
void GradientTurns::share(const std::function<at::Tensor(Parcel&)>& of, const std::function<void(Parcel&, const at::Tensor&)>& take) {
  const at::NoGradGuard no_grad;
  for (int owner = 0; owner < group_.size(); ++owner) {
    at::Tensor flat = at::zeros({chunk_sizes_[static_cast<size_t>(owner)]}, message_options());
    const bool is_mine = owner == group_.rank();
    const std::vector<Parcel*> parcels = parcels_of(owner);
    std::vector<float> flags;
    for (Parcel* parcel : is_mine ? parcels : std::vector<Parcel*>()) {
      const at::Tensor values = of(*parcel);
      flags.push_back(values.defined() ? 1.0F : 0.0F);
      if (values.defined()) shaped(flat, parcel->values_at, values).copy_(values);
    }
    set_flags(flat, 0, flags);
    group_.broadcast(flat, owner);
    if (is_mine) continue;
    flags = flags_in(flat, 0, parcels.size());
    for (size_t i = 0; i < parcels.size(); ++i) {
      take(*parcels[i], flags[i] != 0 ? shaped(flat, parcels[i]->values_at, parcels[i]->parameter) : at::Tensor());
    }
  }
}

void GradientTurns::share_gradients() {
  share([](Parcel& parcel) { return parcel.parameter.grad(); },
        [](Parcel& parcel, const at::Tensor& grad) {
          at::Tensor& here = parcel.parameter.mutable_grad();
          here.reset();
          if (grad.defined()) here = at::empty_like(parcel.parameter, at::TensorOptions().dtype(at::kFloat)).copy_(grad);
        });
}

// float32 carries bfloat16 values as they are.
void GradientTurns::share_values() {
  share([](Parcel& parcel) { return parcel.parameter.detach(); },
        [](Parcel& parcel, const at::Tensor& values) { parcel.parameter.copy_(values); });
}

}  // namespace rematch
