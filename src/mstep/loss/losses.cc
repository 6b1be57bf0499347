#include "mstep/loss/losses.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "mstep/loss/head_gradients.h"
#include "mstep/loss/loss_table.h"

namespace rematch {
namespace {

// Positions of one kind of target that go through the head together.
struct Positions {
  at::Tensor rows_K;       ///< where the logits are read: one before the supervised token
  at::Tensor targets_K;    ///< int64
  at::Tensor is_prefix_K;  ///< slots only, else undefined
  int64_t num_prefix = 0;
};

at::Tensor device_indices(const std::vector<int64_t>& values, size_t begin, size_t end, const at::Device& device) {
  const std::vector<int64_t> part(values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end));
  return at::tensor(part, at::kLong).to(device);
}

Positions take_positions(const KindTargets& targets, size_t begin, size_t end, const at::Device& device) {
  Positions positions;
  positions.rows_K = device_indices(targets.positions, begin, end, device).sub_(1);
  positions.targets_K = device_indices(targets.values, begin, end, device);
  if (targets.is_prefix.empty()) return positions;
  at::Tensor is_prefix_K = at::empty({static_cast<int64_t>(end - begin)}, at::kBool);
  for (size_t i = begin; i < end; ++i) {
    is_prefix_K.data_ptr<bool>()[i - begin] = targets.is_prefix[i];
    positions.num_prefix += targets.is_prefix[i];
  }
  positions.is_prefix_K = is_prefix_K.to(device);
  return positions;
}

// Sends a chunk through the terms of its kind and adds their sums to `row`.
void add_chunk(LossChunk& chunk, const LossKind& kind, const Positions& positions, RowLoss& row) {
  at::Tensor weighted_K;
  for (const auto& [term, weight] : kind.terms) {
    const at::Tensor values_K = term->values_K(chunk, weight);
    chunk.add_sum(term->name, values_K.sum());
    const at::Tensor share_K = values_K * weight;
    weighted_K = weighted_K.defined() ? weighted_K + share_K : share_K;
  }
  const bool has_sources = positions.is_prefix_K.defined();
  const auto share_of = [&](const at::Tensor& mask_K) { return at::mul(weighted_K, mask_K).sum(); };
  std::vector<at::Tensor> sums;
  sums.push_back(has_sources ? share_of(positions.is_prefix_K) : at::zeros({}, weighted_K.options()));
  sums.push_back(has_sources ? share_of(positions.is_prefix_K.logical_not()) : weighted_K.sum());
  for (const auto& [name, sum] : chunk.sums()) sums.push_back(sum);
  const at::Tensor on_host = at::stack(sums).cpu();  // one transfer for all
  const double* value = on_host.const_data_ptr<double>();

  const int64_t count = positions.rows_K.size(0);
  row.by_kind.add(kind.name, {value[0] + value[1], count});
  if (has_sources) {
    row.details.add(kind.name + "_prefix", {value[0], positions.num_prefix});
    row.details.add(kind.name + "_tail", {value[1], count - positions.num_prefix});
  }
  value += 2;
  for (const auto& [name, sum] : chunk.sums()) row.details.add(name, {*value++, count});
}

/// Positions of the first chunk, which shows the size of the vocabulary.
constexpr int64_t kFirstChunk = 64;

int64_t chunk_size(int64_t vocab_size, const LossOptions& options) {
  const int64_t row_bytes = std::max<int64_t>(1, vocab_size) * static_cast<int64_t>(sizeof(float));
  return std::clamp<int64_t>(options.chunk_bytes / row_bytes, 1, options.chunk_positions);
}

void check_targets(const KindTargets& targets, int64_t length) {
  const auto inside = [&](int64_t position) { return position > 0 && position < length; };
  REMATCH_CHECK(
      targets.positions.size() == targets.values.size() && (targets.is_prefix.empty() || targets.is_prefix.size() == targets.values.size()),
      fmt::format("{} {} {}", targets.positions.size(), targets.values.size(), targets.is_prefix.size()));
  REMATCH_CHECK(std::all_of(targets.positions.begin(), targets.positions.end(), inside), fmt::format("row of {} positions", length));
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

double scale_of(const LossScale& scale, const std::string& kind) {
  const auto found = scale.find(kind);
  return found == scale.end() ? 1.0 : found->second;
}

RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision, const Head& head, const LossOptions& options,
                 const LossScale& scale) {
  REMATCH_CHECK(options.chunk_positions > 0, fmt::format("{}", options.chunk_positions));
  RowLoss row;
  HeadGradients gradients(hidden_TH, head);
  auto size = static_cast<size_t>(std::min(kFirstChunk, options.chunk_positions));
  double total = 0;
  for (const LossKind& kind : loss_kinds(options)) {
    const auto found = supervision.by_kind.find(kind.name);
    if (found == supervision.by_kind.end()) continue;
    const KindTargets& targets = found->second;
    check_targets(targets, hidden_TH.size(0));
    for (size_t begin = 0; begin < targets.positions.size();) {
      const size_t end = std::min(begin + size, targets.positions.size());
      const Positions positions = take_positions(targets, begin, end, hidden_TH.device());
      LossChunk chunk(options, gradients.logits_KV(positions.rows_K), positions.targets_K, scale_of(scale, kind.name),
                      gradients.are_needed());
      add_chunk(chunk, kind, positions, row);
      if (gradients.are_needed()) gradients.add(chunk.take_gradient());
      size = static_cast<size_t>(chunk_size(chunk.logits_KV.size(1), options));
      begin = end;
    }
    total += row.by_kind.of(kind.name).sum * scale_of(scale, kind.name);
  }
  // Without supervision an empty slice: zero with a graph and without 0 · NaN.
  const auto scalar = at::TensorOptions().dtype(at::kFloat).device(hidden_TH.device());
  row.total = row.by_kind.empty() ? hidden_TH.narrow(0, 0, 0).sum(at::kFloat) : gradients.attach(at::full({}, total, scalar));
  return row;
}

}  // namespace rematch
