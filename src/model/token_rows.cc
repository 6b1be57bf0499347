#include "model/token_rows.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/nn/affine.h"

namespace rematch {
namespace {

at::Tensor to_index(const std::vector<int64_t>& ids) {
  return at::tensor(ids, at::TensorOptions().dtype(at::kLong));
}

}  // namespace

TokenRows::TokenRows(std::vector<int64_t> token_ids, at::Tensor rows_KH, int64_t num_tokens)
    : token_ids_(std::move(token_ids)), rows_KH_(std::move(rows_KH)) {
  const auto num_rows = std::ssize(token_ids_);
  REMATCH_CHECK(rows_KH_.dim() == 2 && rows_KH_.size(0) == num_rows,
                fmt::format("{} ids for {}", num_rows, c10::str(rows_KH_.sizes())));
  const at::Tensor ids = to_index(token_ids_);
  const at::Tensor slot = at::full({num_tokens}, -1, ids.options())
                              .index_copy(0, ids, at::arange(num_rows, ids.options()));
  ids_K_ = ids.to(rows_KH_.device());
  slot_V_ = slot.to(rows_KH_.device());
}

at::Tensor TokenRows::initial(const at::Tensor& weight_VH, const std::vector<int64_t>& token_ids) {
  const at::NoGradGuard no_grad;
  const at::Tensor rows =
      weight_VH.detach().index_select(0, to_index(token_ids).to(weight_VH.device()));
  return rows.to(at::kFloat).contiguous().set_requires_grad(true);
}

at::Tensor TokenRows::forward(const at::Tensor& x, const LinearWeights& base,
                              Results /*results*/) const {
  const at::Tensor own = affine(x, rows_KH_.to(base.weight.scalar_type()));
  return affine(x, base.weight, base.bias)
      .index_copy(-1, ids_K_, base.bias.defined() ? own + base.bias.index_select(0, ids_K_) : own);
}

at::Tensor TokenRows::embed(const at::Tensor& weight_VH, const at::Tensor& token_ids,
                            int64_t pad) const {
  const at::Tensor slot = slot_V_.index_select(0, token_ids.flatten()).view(token_ids.sizes());
  const auto pad_row = std::ranges::find(token_ids_, pad);
  const int64_t pad_slot = pad_row == token_ids_.end() ? -1 : pad_row - token_ids_.begin();
  const at::Tensor own =
      at::embedding(rows_KH_.to(weight_VH.scalar_type()), slot.clamp_min(0), pad_slot);
  return at::where(slot.ge(0).unsqueeze(-1), own, at::embedding(weight_VH, token_ids, pad));
}

at::Tensor TokenRows::merge(const at::Tensor& weight_VH) const {
  const at::NoGradGuard no_grad;
  return weight_VH.index_copy(0, ids_K_.to(weight_VH.device()),
                              rows_KH_.to(weight_VH.options().requires_grad(false)));
}

}  // namespace rematch
