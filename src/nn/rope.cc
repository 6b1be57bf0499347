#include "nn/rope.h"

#include "nn/upload.h"

namespace rematch {
namespace {

RopeTable make_table(const at::Tensor& angles) {
  const at::Tensor cos = at::cos(angles);
  const at::Tensor sin = at::sin(angles);
  return {at::cat({cos, cos}, -1), at::cat({sin, sin}, -1)};
}

at::Tensor rotate_half(const at::Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::cat({-x.narrow(-1, half, x.size(-1) - half), x.narrow(-1, 0, half)}, -1);
}

}  // namespace

at::Tensor inverse_frequencies(double theta, int64_t dim) {
  const at::Tensor exponents =
      at::arange(0, dim, 2, at::TensorOptions().dtype(at::kFloat)) / static_cast<double>(dim);
  return at::reciprocal(at::pow(theta, exponents));
}

// Selecting the axis before the multiplication gives the same bits as selecting it afterwards.
RopeColumns rope_columns(double theta, const std::vector<int64_t>& axis_of_pair,
                         at::Device device) {
  return {at::tensor(axis_of_pair, at::TensorOptions().dtype(at::kLong)).to(device),
          inverse_frequencies(theta, 2 * static_cast<int64_t>(axis_of_pair.size())).to(device)};
}

RopeTable rope_table(const at::Tensor& positions, const RopeColumns& columns,
                     at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const at::Tensor chosen = upload(positions, columns.axis.device())
                                .index_select(0, columns.axis)
                                .movedim(0, -1)
                                .to(at::kFloat);
  const RopeTable table = make_table((chosen * columns.frequencies).contiguous());
  return {table.cos.to(dtype), table.sin.to(dtype)};
}

RopeTable vision_rope_table(const at::Tensor& coordinates, double theta, int64_t head_dim,
                            at::Device device) {
  const at::NoGradGuard no_grad;
  const at::Tensor frequencies = upload(inverse_frequencies(theta, head_dim / 2), device);
  const at::Tensor angles_N2F =
      upload(coordinates, device).to(at::kFloat).unsqueeze(-1) * frequencies;
  return make_table(angles_N2F.flatten(1));
}

at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table) {
  return x * table.cos.unsqueeze(-2) + rotate_half(x) * table.sin.unsqueeze(-2);
}

}  // namespace rematch
