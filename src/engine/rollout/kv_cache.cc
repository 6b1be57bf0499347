#include "engine/rollout/kv_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

constexpr int64_t kRowDim = 2;
constexpr int64_t kColumnDim = 4;

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

int64_t minimum(const std::vector<int64_t>& values) { return *std::ranges::min_element(values); }

}  // namespace

KvCache::KvCache(const Shape& shape, std::vector<int64_t> paddings, int64_t capacity,
                 const at::TensorOptions& tensor_options)
    : paddings_(std::move(paddings)), capacity_(capacity) {
  allocate({shape.num_layers, 2, num_rows(), shape.num_kv_heads, capacity, shape.head_dim},
           tensor_options);
}

// A value that attention does not use must still be finite: 0·NaN is NaN.
void KvCache::allocate(std::vector<int64_t> sizes, const at::TensorOptions& options) {
  const bool on_cpu = options.device().is_cpu();
  if (!on_cpu) sizes[kColumnDim] = round_up(sizes[kColumnDim], kColumnStep);
  capacity_ = sizes[kColumnDim];
  storage_ = on_cpu ? at::empty(sizes, options) : at::zeros(sizes, options);
}

void KvCache::write(int64_t layer_idx, const at::Tensor& k, const at::Tensor& v) {
  const int64_t end = len_ + k.size(1);
  REMATCH_CHECK(end <= capacity_, fmt::format("{} columns, capacity {}", end, capacity_));
  view(layer_idx, 0, len_, end).copy_(k.transpose(1, 2));
  view(layer_idx, 1, len_, end).copy_(v.transpose(1, 2));
}

at::Tensor KvCache::view(int64_t layer_idx, int64_t which, int64_t first, int64_t end) const {
  return storage_.select(0, layer_idx).select(0, which).narrow(2, first, end - first);
}

void KvCache::rebuild(const std::vector<int64_t>& row_idx, int64_t capacity) {
  std::vector<int64_t> paddings;
  for (const int64_t row : row_idx) paddings.push_back(paddings_[row]);
  const int64_t dropped = minimum(paddings);
  const int64_t kept = len_ - dropped;
  REMATCH_CHECK(capacity - dropped >= kept, fmt::format("{} columns, capacity {}", len_, capacity));
  std::vector<int64_t> sizes = storage_.sizes().vec();
  sizes[kRowDim] = std::ssize(row_idx);
  sizes[kColumnDim] = capacity - dropped;
  const at::Tensor used = storage_.narrow(kColumnDim, dropped, kept);
  allocate(sizes, storage_.options());
  at::Tensor target = storage_.narrow(kColumnDim, 0, kept);
  for (size_t i = 0; i < row_idx.size(); ++i)
    target.select(kRowDim, static_cast<int64_t>(i)).copy_(used.select(kRowDim, row_idx[i]));
  for (int64_t& padding : paddings) padding -= dropped;
  paddings_ = std::move(paddings);
  len_ = kept;
}

CachedAttention::CachedAttention(KvCache& cache, int64_t num_new, at::ScalarType dtype,
                                 const at::Device& device, StateCache* states)
    : cache_(cache), states_(states), num_new_(num_new), dtype_(dtype), device_(device) {
  const int64_t step = cache.column_step();
  first_ = minimum(cache.paddings()) / step * step;
  end_ = round_up(cache.len() + num_new, step);
}

void CachedAttention::make_mask() {
  // `visible` [B, T, columns]: true if the query may attend to the column.
  const at::Tensor column = at::arange(first_, end_, at::kLong);
  const at::Tensor query =
      at::arange(cache_.len(), cache_.len() + num_new_, at::kLong).unsqueeze(1);
  const at::Tensor padding = at::tensor(cache_.paddings(), at::kLong).view({-1, 1, 1});
  // A padding query attends only to itself. Its output is unused but must be finite: as a value it
  // would turn into NaN in real rows (0·NaN).
  const at::Tensor visible = ((column <= query) & (column >= padding)) | (column == query);
  const at::Tensor zeros = at::zeros(visible.sizes(), at::kFloat);
  const at::Tensor mask =
      zeros.masked_fill(visible.logical_not(), -std::numeric_limits<float>::infinity());
  mask_ = upload(mask.to(dtype_), device_).unsqueeze(1);
}

// The rows of all sequences, without padding.
void CachedAttention::find_rows(const at::Device& device) {
  std::vector<int64_t> rows, lens;
  for (size_t b = 0; b < cache_.paddings().size(); ++b) {
    const int64_t padding = cache_.paddings()[b];
    for (int64_t i = padding; i < num_new_; ++i)
      rows.push_back(static_cast<int64_t>(b) * num_new_ + i);
    lens.push_back(num_new_ - padding);
  }
  prefill_ = {.rows = upload_index(rows, device), .bounds = SegmentBounds::from_lens(lens, device)};
}

// Every sequence attends to itself; rows of padding are zero.
at::Tensor CachedAttention::attend_prefill(const at::Tensor& q, const at::Tensor& k,
                                           const at::Tensor& v) {
  if (!prefill_) find_rows(q.device());
  const auto real = [&](const at::Tensor& x) {
    return x.flatten(0, 1).index_select(0, prefill_->rows);
  };
  const at::Tensor attended = varlen_attention(real(q), real(k), real(v), prefill_->bounds,
                                               prefill_->bounds, /*is_causal=*/true);
  return at::zeros_like(q.flatten(0, 1)).index_copy_(0, prefill_->rows, attended).view(q.sizes());
}

at::Tensor CachedAttention::mix_by_delta(int64_t layer_idx, const DeltaTokens& tokens) {
  REMATCH_CHECK(states_ != nullptr);
  return cache_.len() == 0 ? prefill_states(*states_, layer_idx, tokens, cache_.paddings())
                           : step_states(*states_, layer_idx, tokens);
}

at::Tensor CachedAttention::attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v) {
  cache_.write(layer_idx, k, v);
  const AttentionCase attention{.device = device_, .dtype = dtype_, .head_dim = q.size(-1)};
  if (cache_.len() == 0 && num_new_ > 1 && choose_attention(attention) == AttentionKernel::kVarlen)
    return attend_prefill(q, k, v);
  if (!mask_.defined()) make_mask();
  const at::Tensor keys = cache_.keys(layer_idx, first_, end_),
                   values = cache_.values(layer_idx, first_, end_);
  if (q.size(1) == 1) {
    // One token: treats the query heads of a key head as its queries, so keys need no repetition.
    const at::Tensor grouped = q.reshape({q.size(0), k.size(2), q.size(2) / k.size(2), q.size(3)});
    return masked_attention(grouped, keys, values, mask_).reshape(q.sizes());
  }
  return masked_attention(q.transpose(1, 2), keys, values, mask_).transpose(1, 2);
}

}  // namespace rematch
