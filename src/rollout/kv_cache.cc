#include "rollout/kv_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "nn/upload.h"

namespace rematch {
namespace {

constexpr int64_t kRowDim = 2;
constexpr int64_t kColumnDim = 4;

int64_t minimum(const std::vector<int64_t>& values) {
  return *std::min_element(values.begin(), values.end());
}

}  // namespace

KvCache::KvCache(const Shape& shape, std::vector<int64_t> paddings, int64_t capacity,
                 const at::TensorOptions& tensor_options)
    : paddings_(std::move(paddings)),
      capacity_(capacity),
      storage_(
          at::empty({shape.num_layers, 2, num_rows(), shape.num_kv_heads, capacity, shape.head_dim},
                    tensor_options)) {}

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
  for (const int64_t row : row_idx) paddings.push_back(paddings_[static_cast<size_t>(row)]);
  const int64_t dropped = minimum(paddings);
  const int64_t kept = len_ - dropped;
  REMATCH_CHECK(capacity - dropped >= kept, fmt::format("{} columns, capacity {}", len_, capacity));
  std::vector<int64_t> sizes = storage_.sizes().vec();
  sizes[kRowDim] = static_cast<int64_t>(row_idx.size());
  sizes[kColumnDim] = capacity - dropped;
  at::Tensor storage = at::empty(sizes, storage_.options());
  const at::Tensor used = storage_.narrow(kColumnDim, dropped, kept);
  at::Tensor target = storage.narrow(kColumnDim, 0, kept);
  for (size_t i = 0; i < row_idx.size(); ++i)
    target.select(kRowDim, static_cast<int64_t>(i)).copy_(used.select(kRowDim, row_idx[i]));
  for (int64_t& padding : paddings) padding -= dropped;
  paddings_ = std::move(paddings);
  storage_ = std::move(storage);
  capacity_ = capacity - dropped;
  len_ = kept;
}

CachedAttention::CachedAttention(KvCache& cache, int64_t num_new, at::ScalarType dtype,
                                 const at::Device& device)
    : cache_(cache), first_(minimum(cache.paddings())), end_(cache.len() + num_new) {
  // `visible` [B, T, columns]: true if the query may attend to the column.
  const at::Tensor column = at::arange(first_, end_, at::kLong);
  const at::Tensor query = at::arange(cache.len(), end_, at::kLong).unsqueeze(1);
  const at::Tensor padding = at::tensor(cache.paddings(), at::kLong).view({-1, 1, 1});
  // A padding query attends only to itself. Its output is unused but must be finite: as a value it
  // would turn into NaN in real rows (0·NaN).
  const at::Tensor visible = ((column <= query) & (column >= padding)) | (column == query);
  const at::Tensor zeros = at::zeros(visible.sizes(), at::kFloat);
  const at::Tensor mask =
      zeros.masked_fill(visible.logical_not(), -std::numeric_limits<float>::infinity());
  mask_ = upload(mask.to(dtype), device).unsqueeze(1);
}

at::Tensor CachedAttention::attend(int64_t layer_idx, const at::Tensor& q, const at::Tensor& k,
                                   const at::Tensor& v) {
  cache_.write(layer_idx, k, v);
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
