#include "model/nn/batched_product.h"

#include <ATen/Parallel.h>

#include "model/kernels/product.h"

namespace rematch {
namespace {

bool has_kernel(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.dim() >= 3;
}

// A matrix of a batch with one leading dimension.
kernels::Strided matrix(const at::Tensor& x_BMN, int64_t i) {
  return {x_BMN.const_data_ptr<float>() + i * x_BMN.stride(0), x_BMN.stride(1), x_BMN.stride(2)};
}

// c_BMN = c_BMN + sign·a·b, or without c_BMN.
void multiply_into(const at::Tensor& c_BMN, const at::Tensor& a, const at::Tensor& b, double sign,
                   bool adds) {
  const at::Tensor a_BMK = a.flatten(0, -3), b_BKN = b.flatten(0, -3);
  const kernels::ProductSize size{
      .rows = c_BMN.size(1), .columns = c_BMN.size(2), .inputs = a_BMK.size(2)};
  float* const data = c_BMN.data_ptr<float>();
  at::parallel_for(0, c_BMN.size(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels::product(matrix(a_BMK, i), matrix(b_BKN, i), size, static_cast<float>(sign), adds,
                       data + i * size.rows * size.columns);
    }
  });
}

}  // namespace

at::Tensor batched_product(const at::Tensor& a, const at::Tensor& b) {
  if (!has_kernel(a) || !has_kernel(b)) return at::matmul(a, b);
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-1);
  const at::Tensor c = at::empty(sizes, a.options());
  multiply_into(c.flatten(0, -3), a, b, 1, /*adds=*/false);
  return c;
}

at::Tensor add_batched_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b,
                               double sign) {
  if (!has_kernel(a) || !has_kernel(b)) return sum.baddbmm_(a, b, 1, sign);
  multiply_into(sum, a, b, sign, /*adds=*/true);
  return sum;
}

}  // namespace rematch
