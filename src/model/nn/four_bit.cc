#include "model/nn/four_bit.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/nn/affine.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Values that a device dequantises at a time: bounds its temporary float32 copies.
constexpr int64_t kDeviceValues = int64_t{1} << 24;

// The two values of each byte.
using Pairs = std::array<std::array<float, 2>, 256>;

Pairs make_pairs(FourBitKind kind) {
  const std::array<float, 16>& values = four_bit_values(kind);
  Pairs pairs;
  for (size_t byte = 0; byte < pairs.size(); ++byte)
    pairs[byte] = {values[byte >> 4], values[byte & 15]};
  return pairs;
}

const Pairs& pairs_of(FourBitKind kind) {
  static const Pairs nf4 = make_pairs(FourBitKind::kNf4), fp4 = make_pairs(FourBitKind::kFp4);
  return kind == FourBitKind::kNf4 ? nf4 : fp4;
}

template <typename Value>
void dequantise_cpu(const FourBitWeight& weight, const float* absmax, Value* out) {
  const Pairs& pairs = pairs_of(weight.kind);
  const uint8_t* codes = weight.codes.const_data_ptr<uint8_t>();
  const int64_t num_values = weight.num_values();
  constexpr int64_t kGrain = 256;  // blocks
  at::parallel_for(0, weight.num_blocks(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const float scale = absmax[block];
      const int64_t begin = block * weight.blocksize,
                    end = std::min(begin + weight.blocksize, num_values);
      for (int64_t i = begin; i + 1 < end; i += 2) {
        const std::array<float, 2>& pair = pairs[codes[i / 2]];
        out[i] = static_cast<Value>(pair[0] * scale);
        out[i + 1] = static_cast<Value>(pair[1] * scale);
      }
      if ((end - begin) % 2 != 0)
        out[end - 1] = static_cast<Value>(pairs[codes[end / 2]][0] * scale);
    }
  });
}

// The same table as a tensor on the CPU; not to be changed.
at::Tensor table_of(FourBitKind kind) {
  auto* pairs = const_cast<Pairs*>(&pairs_of(kind));  // NOLINT
  return at::from_blob(pairs, {256, 2}, at::TensorOptions(at::kFloat));
}

// The first values, of whole blocks, with torch's operators.
void dequantise_blocks(const FourBitWeight& weight, const at::Tensor& absmax, const at::Tensor& out,
                       int64_t num_blocks) {
  if (num_blocks == 0) return;
  const at::Tensor pairs = weight.pairs.defined() ? weight.pairs : table_of(weight.kind);
  const int64_t step = std::max<int64_t>(1, kDeviceValues / weight.blocksize);
  for (int64_t first = 0; first < num_blocks; first += step) {
    const int64_t count = std::min(step, num_blocks - first);
    const at::Tensor bytes =
        weight.codes.narrow(0, first * weight.blocksize / 2, count * weight.blocksize / 2);
    const at::Tensor values =
        pairs.index_select(0, bytes.to(at::kInt)).view({count, weight.blocksize});
    at::Tensor part = out.narrow(0, first * weight.blocksize, count * weight.blocksize)
                          .view({count, weight.blocksize});
    // Rounded as it is written: no other float32 copy.
    at::mul_out(part, values, absmax.narrow(0, first, count).unsqueeze(1));
  }
}

// Holds a weight in a graph.
struct HeldWeight : torch::CustomClassHolder {
  explicit HeldWeight(std::shared_ptr<const FourBitWeight> held) : weight(std::move(held)) {}
  std::shared_ptr<const FourBitWeight> weight;
};

struct FourBitFunction : torch::autograd::Function<FourBitFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::optional<at::Tensor>& bias,
                            const c10::intrusive_ptr<HeldWeight>& held, Results results) {
    context->saved_data["weight"] = c10::IValue::make_capsule(held);
    context->saved_data["sizes"] = x.sizes().vec();
    context->saved_data["biased"] = bias.has_value();
    if (results == Results::kRead)
      return affine(x, held->weight->dequantised(x.scalar_type()), bias.value_or(at::Tensor()));
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = held->weight->num_outputs;
    return at::zeros(sizes, x.options());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto held =
        c10::static_intrusive_pointer_cast<HeldWeight>(context->saved_data["weight"].toCapsule());
    const FourBitWeight& weight = *held->weight;
    const at::Tensor g_MN = gradients[0].reshape({-1, weight.num_outputs}).contiguous();
    variable_list found(4);
    if (context->needs_input_grad(0)) {
      found[0] = product_MN(g_MN, weight.dequantised(g_MN.scalar_type()).t())
                     .view(context->saved_data["sizes"].toIntVector());
    }
    if (context->saved_data["biased"].toBool() && context->needs_input_grad(1))
      found[1] = g_MN.sum(0);
    return found;
  }
};

}  // namespace

const std::array<float, 16>& four_bit_values(FourBitKind kind) {
  static constexpr std::array<float, 16> kNf4 = {
      -1.0f,
      -0.6961928009986877f,
      -0.5250730514526367f,
      -0.39491748809814453f,
      -0.28444138169288635f,
      -0.18477343022823334f,
      -0.09105003625154495f,
      0.0f,
      0.07958029955625534f,
      0.16093020141124725f,
      0.24611230194568634f,
      0.33791524171829224f,
      0.44070982933044434f,
      0.5626170039176941f,
      0.7229568362236023f,
      1.0f,
  };
  // A sign, two bits of exponent and one of mantissa, divided by the largest value, 12.
  static constexpr std::array<float, 16> kFp4 = {
      0.0f,  0.0625f / 12,  8.0f / 12,  1.0f,  4.0f / 12,  0.5f,  2.0f / 12,  0.25f,
      -0.0f, -0.0625f / 12, -8.0f / 12, -1.0f, -4.0f / 12, -0.5f, -2.0f / 12, -0.25f,
  };
  return kind == FourBitKind::kNf4 ? kNf4 : kFp4;
}

int64_t FourBitWeight::num_bytes() const {
  size_t sum = codes.nbytes() + absmax.nbytes();
  for (const at::Tensor& tensor : {nested_absmax, nested_map}) {
    if (tensor.defined()) sum += tensor.nbytes();
  }
  return static_cast<int64_t>(sum);
}

std::vector<at::Tensor> FourBitWeight::parts() const {
  std::vector<at::Tensor> parts{codes, absmax};
  for (const at::Tensor& tensor : {nested_absmax, nested_map}) {
    if (tensor.defined()) parts.push_back(tensor);
  }
  parts.push_back(at::tensor(
      {static_cast<int64_t>(kind), blocksize, nested_blocksize, static_cast<int64_t>(rounded_to)},
      at::kLong));
  parts.push_back(at::tensor({offset}, at::kFloat));
  return parts;
}

FourBitWeight FourBitWeight::to(const at::Device& device) const {
  FourBitWeight moved = *this;
  for (at::Tensor* tensor :
       {&moved.codes, &moved.absmax, &moved.nested_absmax, &moved.nested_map}) {
    if (tensor->defined()) *tensor = tensor->to(device);
  }
  // Uploaded once, not each time that the weight is used.
  moved.pairs = device.is_cpu() || device.is_meta() ? at::Tensor() : table_of(kind).to(device);
  return moved;
}

at::Tensor FourBitWeight::block_absmax() const {
  const at::NoGradGuard no_grad;
  if (!nested_absmax.defined()) return absmax;
  const at::Tensor scales =
      nested_absmax.repeat_interleave(nested_blocksize).narrow(0, 0, absmax.size(0));
  // Three steps, each rounded: a fused one would have other bits.
  return nested_map.index_select(0, absmax.to(at::kInt)).mul_(scales).add_(offset);
}

at::Tensor dequantise_by_operators(const FourBitWeight& weight, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const int64_t num_values = weight.num_values();
  const at::Tensor out = at::empty({num_values}, weight.codes.options().dtype(dtype)),
                   absmax = weight.block_absmax();
  const int64_t num_whole = num_values / weight.blocksize;
  dequantise_blocks(weight, absmax, out, num_whole);
  if (const int64_t rest = num_values % weight.blocksize; rest > 0) {
    FourBitWeight tail = weight;
    tail.num_outputs = 1;
    tail.num_inputs = tail.blocksize = (rest + 1) / 2 * 2;
    tail.codes = weight.codes.narrow(0, num_whole * weight.blocksize / 2, (rest + 1) / 2);
    const at::Tensor values = at::empty({tail.num_inputs}, out.options());
    dequantise_blocks(tail, absmax.narrow(0, num_whole, 1), values, 1);
    out.narrow(0, num_whole * weight.blocksize, rest).copy_(values.narrow(0, 0, rest));
  }
  return out.view({weight.num_outputs, weight.num_inputs});
}

at::Tensor FourBitWeight::dequantised(at::ScalarType dtype) const {
  const at::NoGradGuard no_grad;
  REMATCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf,
                at::toString(dtype));
  if (codes.is_meta()) return at::empty({num_outputs, num_inputs}, codes.options().dtype(dtype));
  if (rounded_to != at::kFloat && rounded_to != dtype) return dequantised(rounded_to).to(dtype);
  if (!codes.is_cpu()) return dequantise_by_operators(*this, dtype);
  at::Tensor out = at::empty({num_outputs, num_inputs}, at::TensorOptions(dtype));
  const at::Tensor scales = block_absmax().contiguous();
  const float* data = scales.const_data_ptr<float>();
  if (dtype == at::kFloat) {
    dequantise_cpu(*this, data, out.data_ptr<float>());
  } else if (dtype == at::kBFloat16) {
    dequantise_cpu(*this, data, out.data_ptr<at::BFloat16>());
  } else {
    dequantise_cpu(*this, data, out.data_ptr<at::Half>());
  }
  return out;
}

at::Tensor four_bit_affine(const at::Tensor& x, const std::shared_ptr<const FourBitWeight>& weight,
                           const at::Tensor& bias, Results results) {
  return FourBitFunction::apply(x, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt,
                                c10::make_intrusive<HeldWeight>(weight), results);
}

}  // namespace rematch
