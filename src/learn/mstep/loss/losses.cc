#include "learn/mstep/loss/losses.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "learn/mstep/loss/head_gradients.h"
#include "learn/mstep/loss/loss_table.h"
#include "model/nn/device_kernels.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

// Positions of one kind of target that go through the head together.
struct Positions {
  at::Tensor rows_K;       ///< where the logits are read: one before the supervised token
  at::Tensor targets_K;    ///< int64
  at::Tensor is_prefix_K;  ///< slots only, else undefined
  int64_t num_prefix = 0;
};

at::Tensor device_indices(const std::vector<int64_t>& values, size_t begin, size_t end,
                          const at::Device& device) {
  return upload_index({values.begin() + begin, values.begin() + end}, device);
}

Positions take_positions(const KindTargets& targets, size_t begin, size_t end,
                         const at::Device& device) {
  Positions positions;
  positions.rows_K = device_indices(targets.positions, begin, end, device).sub_(1);
  positions.targets_K = device_indices(targets.values, begin, end, device);
  if (targets.is_prefix.empty()) return positions;
  at::Tensor is_prefix_K = at::empty({static_cast<int64_t>(end - begin)}, at::kBool);
  for (size_t i = begin; i < end; ++i) {
    is_prefix_K.data_ptr<bool>()[i - begin] = targets.is_prefix[i];
    positions.num_prefix += targets.is_prefix[i];
  }
  positions.is_prefix_K = upload(is_prefix_K, device);
  return positions;
}

// Sends a chunk through the terms of its kind. Returns its weighted sum, a float64 scalar on the
// device.
at::Tensor add_chunk(LossChunk& chunk, const LossKind& kind, const Positions& positions,
                     RowLoss& row) {
  at::Tensor weighted_K;
  for (const auto& [term, weight] : kind.terms) {
    const at::Tensor values_K = term->values_K(chunk, weight);
    chunk.add_sum(term->name, values_K.sum());
    const at::Tensor share_K = values_K * weight;
    weighted_K = weighted_K.defined() ? weighted_K + share_K : share_K;
  }
  const bool has_sources = positions.is_prefix_K.defined();
  const auto masked_sum = [&](const at::Tensor& mask_K) {
    return at::mul(weighted_K, mask_K).sum();
  };
  std::vector<at::Tensor> sums;
  sums.push_back(has_sources ? masked_sum(positions.is_prefix_K)
                             : at::zeros({}, weighted_K.options()));
  sums.push_back(has_sources ? masked_sum(positions.is_prefix_K.logical_not()) : weighted_K.sum());
  Strings names;
  for (const auto& [name, sum] : chunk.sums()) {
    sums.push_back(sum);
    names.push_back(name);
  }
  row.pending.push_back({.kind = kind.name,
                         .sums_S = at::stack(sums),
                         .names = std::move(names),
                         .count = positions.rows_K.size(0),
                         .num_prefix = positions.num_prefix,
                         .has_sources = has_sources});
  return sums[0] + sums[1];
}

// @param value  the sums of the chunk, on the host
void add_sums(const PendingSums& chunk, const double* value, RowLoss& row) {
  row.by_kind.add(chunk.kind, {value[0] + value[1], chunk.count});
  if (chunk.has_sources) {
    row.details.add(chunk.kind + "_prefix", {value[0], chunk.num_prefix});
    row.details.add(chunk.kind + "_tail", {value[1], chunk.count - chunk.num_prefix});
  }
  value += 2;
  for (const std::string& name : chunk.names) row.details.add(name, {*value++, chunk.count});
}

/// Positions of the first chunk; its logits show the size of the vocabulary.
constexpr int64_t kFirstChunk = 64;

int64_t chunk_size(const at::Tensor& logits_KV, const LossOptions& options) {
  const int64_t row_bytes =
      std::max<int64_t>(1, logits_KV.size(1)) * static_cast<int64_t>(sizeof(float));
  const int64_t most_bytes =
      uses_device_kernels(logits_KV.device()) ? options.device_chunk_bytes : options.chunk_bytes;
  return std::clamp<int64_t>(most_bytes / row_bytes, 1, options.chunk_positions);
}

void check_targets(const KindTargets& targets, int64_t length) {
  const auto inside = [&](int64_t position) { return position > 0 && position < length; };
  REMATCH_CHECK(
      targets.positions.size() == targets.values.size() &&
          (targets.is_prefix.empty() || targets.is_prefix.size() == targets.values.size()),
      fmt::format("{} {} {}", targets.positions.size(), targets.values.size(),
                  targets.is_prefix.size()));
  REMATCH_CHECK(std::ranges::all_of(targets.positions, inside),
                fmt::format("row of {} positions", length));
}

}  // namespace

LossSum NamedSums::of(const std::string& name) const {
  const auto found = find(name);
  return found == end() ? LossSum() : found->second;
}

void NamedSums::add(const std::string& name, const LossSum& more) {
  LossSum& mine = (*this)[name];
  mine.sum += more.sum;
  mine.count += more.count;
}

void NamedSums::add(const NamedSums& more) {
  for (const auto& [name, sum] : more) add(name, sum);
}

double get_scale(const LossScale& scale, const std::string& kind) {
  const auto found = scale.find(kind);
  return found == scale.end() ? 1.0 : found->second;
}

RowLoss pending_row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision,
                         const Head& head, const LossOptions& options, const LossScale& scale) {
  REMATCH_CHECK(options.chunk_positions > 0, fmt::format("{}", options.chunk_positions));
  RowLoss row;
  HeadGradients gradients(hidden_TH, head);
  size_t size = std::min(kFirstChunk, options.chunk_positions);
  at::Tensor total;  // float64, as the sums are
  for (const LossKind& kind : loss_kinds(options)) {
    const auto found = supervision.by_kind.find(kind.name);
    if (found == supervision.by_kind.end()) continue;
    const KindTargets& targets = found->second;
    check_targets(targets, hidden_TH.size(0));
    at::Tensor kind_sum;
    for (size_t begin = 0; begin < targets.positions.size();) {
      const size_t end = std::min(begin + size, targets.positions.size());
      const Positions positions = take_positions(targets, begin, end, hidden_TH.device());
      LossChunk chunk(options, gradients.logits_KV(positions.rows_K), positions.targets_K,
                      get_scale(scale, kind.name), gradients.are_needed());
      const at::Tensor chunk_sum = add_chunk(chunk, kind, positions, row);
      kind_sum = kind_sum.defined() ? kind_sum + chunk_sum : chunk_sum;
      if (gradients.are_needed()) gradients.add(chunk.take_gradient());
      size = chunk_size(chunk.logits_KV, options);
      begin = end;
    }
    if (!kind_sum.defined()) continue;
    const at::Tensor scaled = kind_sum * get_scale(scale, kind.name);
    total = total.defined() ? total + scaled : scaled;
  }
  // Without supervision: the sum of an empty slice, which is zero with a graph, even for NaN.
  row.total = total.defined() ? gradients.attach(total.to(at::kFloat))
                              : hidden_TH.narrow(0, 0, 0).sum(at::kFloat);
  return row;
}

void settle(std::span<RowLoss> rows) {
  std::vector<at::Tensor> sums;
  for (const RowLoss& row : rows) {
    for (const PendingSums& chunk : row.pending) sums.push_back(chunk.sums_S);
  }
  if (sums.empty()) return;
  const at::Tensor on_host = at::cat(sums).cpu();
  const double* value = on_host.const_data_ptr<double>();
  for (RowLoss& row : rows) {
    for (const PendingSums& chunk : row.pending) {
      add_sums(chunk, value, row);
      value += chunk.sums_S.numel();
    }
    row.pending.clear();
  }
}

RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision, const Head& head,
                 const LossOptions& options, const LossScale& scale) {
  RowLoss row = pending_row_loss(hidden_TH, supervision, head, options, scale);
  settle({&row, 1});
  return row;
}

}  // namespace rematch
