#include "model/coord_rows.h"

#include <c10/core/GradMode.h>

#include <algorithm>

namespace rematch {
namespace {

constexpr double kMaxSpread = 0.03;  ///< relative to the other rows; new rows have 0.01
constexpr int64_t kMaxOtherRows = 4096;

double measure_spread(const at::Tensor& rows) {
  const at::Tensor values = rows.to(at::kFloat);
  return (values - values.mean(0)).square().mean().sqrt().item<double>();
}

}  // namespace

bool rows_look_untrained(const at::Tensor& table_VH, const std::vector<int64_t>& token_ids) {
  const at::NoGradGuard no_grad;
  const at::Tensor ids =
      at::tensor(token_ids, at::TensorOptions().dtype(at::kLong)).to(table_VH.device());
  const int64_t num_others = std::min({kMaxOtherRows, ids.min().item<int64_t>(), table_VH.size(0)});
  if (num_others < 2) return false;  // nothing to compare with
  return measure_spread(table_VH.index_select(0, ids)) <=
         kMaxSpread * measure_spread(table_VH.narrow(0, 0, num_others));
}

}  // namespace rematch
