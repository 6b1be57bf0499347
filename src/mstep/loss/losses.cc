#include "mstep/loss/losses.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "mstep/loss/ce_loss.h"
#include "mstep/loss/coord_loss.h"
#include "mstep/loss/head_gradients.h"

namespace rematch {
namespace {

// What the chunks of a row share.
struct RowJob {
  const LossOptions& options;
  double ce_scale = 1.0;
  double coord_scale = 1.0;
  at::Tensor coord_ids_B;
};

// Positions of one kind that go through the head together.
struct Chunk {
  at::Tensor rows_K;       ///< where the logits are read: one before the supervised token
  at::Tensor targets_K;    ///< labels or bins
  at::Tensor is_prefix_K;  ///< slots only; undefined for cross-entropy
  bool is_ce() const { return !is_prefix_K.defined(); }
};

// Adds the chunk's sums to `row`. Returns its gradient by the logits; undefined unless asked for.
at::Tensor add_chunk(const at::Tensor& logits_KV, const Chunk& chunk, const RowJob& job, bool needs_grad, RowLoss& row) {
  if (chunk.is_ce()) {
    const CeChunk ce = ce_chunk(logits_KV, chunk.targets_K, job.ce_scale, needs_grad);
    row.ce_sum += ce.sum;
    row.ce_correct_count += ce.correct_count;
    return ce.grad_KV;
  }
  const CoordChunk coord =
      coord_chunk(logits_KV, job.coord_ids_B, chunk.targets_K, chunk.is_prefix_K, job.options, job.coord_scale, needs_grad);
  row.coord_sum += coord.weighted_sum[kCoordPrefix] + coord.weighted_sum[kCoordAppend];
  row.soft_ce_sum += coord.soft_ce_sum;
  row.w1_sum += coord.w1_sum;
  row.gate_sum += coord.gate_sum;
  row.coord_prefix_sum += coord.weighted_sum[kCoordPrefix];
  row.coord_append_sum += coord.weighted_sum[kCoordAppend];
  return coord.grad_KV;
}

at::Tensor device_indices(const std::vector<int64_t>& values, size_t begin, size_t end, const at::Device& device) {
  const std::vector<int64_t> part(values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end));
  return at::tensor(part, at::kLong).to(device);
}

// The next chunk of a row: at most `size` positions, cross-entropy first, the two kinds never mixed.
class Chunks {
 public:
  Chunks(const RowSupervision& supervision, const at::Device& device) : supervision_(supervision), device_(device) {}
  bool done() const { return next_ == supervision_.ce_positions.size() + supervision_.slot_positions.size(); }
  Chunk take(int64_t size) {
    const size_t num_ce = supervision_.ce_positions.size();
    const bool is_ce = next_ < num_ce;
    const std::vector<int64_t>& positions = is_ce ? supervision_.ce_positions : supervision_.slot_positions;
    const size_t begin = is_ce ? next_ : next_ - num_ce;
    const size_t end = std::min(begin + static_cast<size_t>(size), positions.size());
    next_ += end - begin;
    Chunk chunk;
    chunk.rows_K = device_indices(positions, begin, end, device_).sub_(1);
    chunk.targets_K = device_indices(is_ce ? supervision_.ce_labels : supervision_.slot_bins, begin, end, device_);
    if (is_ce) return chunk;
    at::Tensor is_prefix_K = at::empty({static_cast<int64_t>(end - begin)}, at::kBool);
    for (size_t i = begin; i < end; ++i) is_prefix_K.data_ptr<bool>()[i - begin] = supervision_.slot_is_prefix[i];
    chunk.is_prefix_K = is_prefix_K.to(device_);
    return chunk;
  }

 private:
  const RowSupervision& supervision_;
  at::Device device_;
  size_t next_ = 0;
};

/// Positions of the first chunk, which tells how wide the vocabulary is.
constexpr int64_t kFirstChunk = 64;

int64_t chunk_size(int64_t vocab_size, const LossOptions& options) {
  const int64_t row_bytes = std::max<int64_t>(1, vocab_size) * static_cast<int64_t>(sizeof(float));
  return std::clamp<int64_t>(options.chunk_bytes / row_bytes, 1, options.chunk_positions);
}

void check_supervision(const at::Tensor& hidden_TH, const RowSupervision& s) {
  const int64_t length = hidden_TH.size(0);
  const auto inside = [&](int64_t position) { return position > 0 && position < length; };
  REMATCH_CHECK(s.ce_positions.size() == s.ce_labels.size() && s.slot_positions.size() == s.slot_bins.size() &&
                    s.slot_positions.size() == s.slot_is_prefix.size(),
                fmt::format("{} {} {} {} {}", s.ce_positions.size(), s.ce_labels.size(), s.slot_positions.size(), s.slot_bins.size(),
                            s.slot_is_prefix.size()));
  REMATCH_CHECK(std::all_of(s.ce_positions.begin(), s.ce_positions.end(), inside) &&
                    std::all_of(s.slot_positions.begin(), s.slot_positions.end(), inside),
                fmt::format("row of {} positions", length));
}

}  // namespace

RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision,
                 const std::function<at::Tensor(const at::Tensor&)>& head_KV, const LossOptions& options, double ce_scale,
                 double coord_scale) {
  check_supervision(hidden_TH, supervision);
  REMATCH_CHECK(options.chunk_positions > 0, fmt::format("{}", options.chunk_positions));
  const at::Device device = hidden_TH.device();
  RowLoss row;
  const std::vector<int64_t> coord_ids(options.coord_token_ids.begin(), options.coord_token_ids.end());
  const RowJob job{options, ce_scale, coord_scale, at::tensor(coord_ids, at::kLong).to(device)};

  HeadGradients gradients(hidden_TH, head_KV);
  Chunks chunks(supervision, device);
  int64_t size = std::min(kFirstChunk, options.chunk_positions);
  while (!chunks.done()) {
    const Chunk chunk = chunks.take(size);
    const at::Tensor logits_KV = gradients.logits_KV(chunk.rows_K);
    const at::Tensor grad_KV = add_chunk(logits_KV, chunk, job, gradients.needs_gradient(), row);
    size = chunk_size(logits_KV.size(1), options);
    if (gradients.needs_gradient()) gradients.add(grad_KV);
  }
  row.ce_count = static_cast<int64_t>(supervision.ce_positions.size());
  row.coord_count = static_cast<int64_t>(supervision.slot_positions.size());
  row.coord_prefix_count = std::count(supervision.slot_is_prefix.begin(), supervision.slot_is_prefix.end(), true);
  row.coord_append_count = row.coord_count - row.coord_prefix_count;
  // Without supervision an empty slice: zero with a graph and without 0 · NaN.
  const bool is_empty = row.ce_count + row.coord_count == 0;
  const auto scalar = at::TensorOptions().dtype(at::kFloat).device(device);
  row.total = is_empty ? hidden_TH.narrow(0, 0, 0).sum(at::kFloat)
                       : gradients.attach(at::full({}, row.ce_sum * ce_scale + row.coord_sum * coord_scale, scalar));
  return row;
}

}  // namespace rematch
