#include "model/nn/rope.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>
#include <vector>

#include "model/nn/device_kernels.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

RopeTable make_table(const at::Tensor& angles) {
  const at::Tensor cos = at::cos(angles);
  const at::Tensor sin = at::sin(angles);
  return {at::cat({cos, cos}, -1), at::cat({sin, sin}, -1),
          uses_device_kernels(angles.device()) ? at::cat({-sin, sin}, -1) : at::Tensor()};
}

at::Tensor rotate_half(const at::Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::cat({-x.narrow(-1, half, x.size(-1) - half), x.narrow(-1, 0, half)}, -1);
}

// x·cos + swap(x)·signed_sin, where swap exchanges the halves. Backward is the rotation by the
// negative angle. @param sign  of the angle
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& signed_sin,
                  double sign) {
  return at::addcmul(x * cos, at::roll(x, x.size(-1) / 2, -1), signed_sin, sign);
}

void save_rotation(torch::autograd::AutogradContext& context, const at::Tensor& x,
                   const at::Tensor& cos, const at::Tensor& signed_sin) {
  context.save_for_backward({cos, signed_sin});
  context.saved_data["dtype"] = static_cast<int64_t>(x.scalar_type());
}

at::Tensor rotate_back(torch::autograd::AutogradContext& context, const at::Tensor& gradient) {
  const auto saved = context.get_saved_variables();
  const auto dtype = static_cast<at::ScalarType>(context.saved_data["dtype"].toInt());
  return rotate(gradient, saved[0], saved[1], -1).to(dtype);
}

struct Rotation : torch::autograd::Function<Rotation> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& cos, const at::Tensor& signed_sin) {
    save_rotation(*context, x, cos, signed_sin);
    return rotate(x, cos, signed_sin, 1);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {rotate_back(*context, gradients[0]), {}, {}};
  }
};

// The same for queries and keys together, [..., heads, D] each. Their halves are copied side by
// side, first, second and first again, so that the halves and the exchanged halves are views.
// @return  both, [..., heads of both, D]
at::Tensor rotate_both(const at::Tensor& q, const at::Tensor& k, const at::Tensor& cos,
                       const at::Tensor& signed_sin) {
  const int64_t width = q.size(-1), half = width / 2, num_heads = q.size(-2) + k.size(-2);
  const auto halves = [&](const at::Tensor& x) {  // [..., 2, heads, D/2]
    return x.unflatten(-1, {2, half}).transpose(-3, -2);
  };
  const auto part = [&](const at::Tensor& x, int64_t i) { return x.narrow(-1, i * half, half); };
  const at::Tensor copied =
      at::cat({part(q, 0), part(k, 0), part(q, 1), part(k, 1), part(q, 0), part(k, 0)}, -2)
          .unflatten(-2, {3, num_heads});
  std::vector<int64_t> sizes = q.sizes().vec();
  sizes.end()[-2] = num_heads;
  const at::Tensor both = at::empty(sizes, q.options().dtype(at::result_type(q, cos)));
  at::Tensor out = halves(both);
  at::mul_out(out, copied.narrow(-3, 0, 2), halves(cos));
  out.addcmul_(copied.narrow(-3, 1, 2), halves(signed_sin));
  return both;
}

struct RotationOfBoth : torch::autograd::Function<RotationOfBoth> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context,
                                                const at::Tensor& q, const at::Tensor& k,
                                                const at::Tensor& cos,
                                                const at::Tensor& signed_sin) {
    save_rotation(*context, q, cos, signed_sin);
    const at::Tensor both = rotate_both(q, k, cos, signed_sin);
    return {both.narrow(-2, 0, q.size(-2)), both.narrow(-2, q.size(-2), k.size(-2))};
  }
  // Apart: the norms before them read whole tensors.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {rotate_back(*context, gradients[0]), rotate_back(*context, gradients[1]), {}, {}};
  }
};

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
          inverse_frequencies(theta, 2 * std::ssize(axis_of_pair)).to(device)};
}

RopeTable rope_table(const at::Tensor& positions, const RopeColumns& columns,
                     at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const at::Tensor chosen = upload(positions, columns.axis.device())
                                .index_select(0, columns.axis)
                                .movedim(0, -1)
                                .to(at::kFloat);
  const RopeTable table = make_table((chosen * columns.frequencies).contiguous());
  return {table.cos.to(dtype), table.sin.to(dtype),
          table.signed_sin.defined() ? table.signed_sin.to(dtype) : at::Tensor()};
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
  if (table.signed_sin.defined())
    return Rotation::apply(x, table.cos.unsqueeze(-2), table.signed_sin.unsqueeze(-2));
  return x * table.cos.unsqueeze(-2) + rotate_half(x) * table.sin.unsqueeze(-2);
}

std::pair<at::Tensor, at::Tensor> apply_rope(const at::Tensor& q, const at::Tensor& k,
                                             const RopeTable& table) {
  if (!table.signed_sin.defined()) return {apply_rope(q, table), apply_rope(k, table)};
  const auto both =
      RotationOfBoth::apply(q, k, table.cos.unsqueeze(-2), table.signed_sin.unsqueeze(-2));
  return {both[0], both[1]};
}

}  // namespace rematch
