#include "model/lora.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "model/nn/affine.h"
#include "model/nn/device_kernels.h"
#include "model/nn/dropout.h"

namespace rematch {
namespace {

constexpr uint64_t kInitialA = 0x6c6f72615f61;  // separate random streams
constexpr uint64_t kDropout = 0x6c6f72615f64;
/// Values of a weight that are converted to float32 at a time.
constexpr int64_t kSliceValues = int64_t{1} << 24;

// FNV-1a, which turns names into random keys.
uint64_t hash_name(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Calls `work` for slices [begin, begin + count) of the rows.
void for_slices(const at::Tensor& weight_OI,
                const std::function<void(int64_t begin, int64_t count)>& work) {
  const int64_t step = std::max<int64_t>(1, kSliceValues / std::max<int64_t>(1, weight_OI.size(1)));
  for (int64_t begin = 0; begin < weight_OI.size(0); begin += step)
    work(begin, std::min(step, weight_OI.size(0) - begin));
}

at::Tensor row_norms(const at::Tensor& rows) {
  return at::linalg_vector_norm(rows, 2, at::IntArrayRef{1});
}

// `cast`, whose gradient is that of the tensor that it was made from.
struct CastGradient : torch::autograd::Function<CastGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& original,
                            const at::Tensor& cast) {
    context->saved_data["dtype"] = static_cast<int64_t>(original.scalar_type());
    return cast.view(cast.sizes());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto dtype = static_cast<at::ScalarType>(context->saved_data["dtype"].toInt());
    return {gradients[0].to(dtype), {}};
  }
};

at::Tensor without_bias(const at::Tensor& x, const LinearWeights& base) {
  return base_linear(x, {.weight = base.weight, .bias = {}, .packed = base.packed});
}

}  // namespace

LoraTensors initial_lora(const at::Tensor& weight_OI, const LoraSettings& options,
                         const std::string& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  const auto float32 = at::TensorOptions().dtype(at::kFloat);
  const int64_t width = weight_OI.size(1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  const uint64_t key = random_key(kInitialA, seed, hash_name(module));
  LoraTensors tensors;
  tensors.a_rI = at::empty({options.rank, width}, float32);
  float* values = tensors.a_rI.data_ptr<float>();
  for (int64_t i = 0; i < tensors.a_rI.numel(); ++i) {
    values[i] =
        static_cast<float>((2.0 * random_uniform(key, static_cast<uint64_t>(i)) - 1.0) * bound);
  }
  tensors.a_rI = tensors.a_rI.to(weight_OI.scalar_type()).to(at::kFloat).to(weight_OI.device());
  tensors.b_Or = at::zeros({weight_OI.size(0), options.rank}, float32.device(weight_OI.device()));
  if (options.use_dora)
    tensors.magnitude_O = row_norms(weight_OI.detach()).to(weight_OI.scalar_type()).to(at::kFloat);
  for (at::Tensor* tensor : {&tensors.a_rI, &tensors.b_Or, &tensors.magnitude_O}) {
    if (tensor->defined()) tensor->set_requires_grad(true);
  }
  return tensors;
}

at::Tensor merge_lora(const at::Tensor& weight_OI, const LoraTensors& tensors, double scaling) {
  const at::NoGradGuard no_grad;
  at::Tensor merged = at::empty_like(weight_OI);
  const auto here = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(weight_OI.device()) : tensor;
  };
  const at::Tensor a_rI = here(tensors.a_rI), b_Or = here(tensors.b_Or),
                   magnitude_O = here(tensors.magnitude_O);
  for_slices(weight_OI, [&](int64_t begin, int64_t count) {
    const at::Tensor delta = at::mm(b_Or.narrow(0, begin, count), a_rI) * scaling;
    at::Tensor rows = weight_OI.narrow(0, begin, count).to(at::kFloat) + delta;
    if (magnitude_O.defined())
      rows = (magnitude_O.narrow(0, begin, count) / row_norms(rows)).unsqueeze(1) * rows;
    merged.narrow(0, begin, count).copy_(rows);
  });
  return merged;
}

LoraLinear::LoraLinear(std::string module, const LoraSettings& options, LoraTensors tensors,
                       std::shared_ptr<const LoraDropout> dropout, bool keeps_merged)
    : module_(std::move(module)),
      options_(options),
      tensors_(std::move(tensors)),
      dropout_(std::move(dropout)),
      keeps_merged_(keeps_merged) {
  REMATCH_CHECK(tensors_.a_rI.size(0) == tensors_.b_Or.size(1) &&
                    tensors_.magnitude_O.defined() == options.use_dora,
                module_);
}

std::vector<at::Tensor> LoraLinear::parameters() const {
  std::vector<at::Tensor> parameters{tensors_.a_rI, tensors_.b_Or};
  if (tensors_.magnitude_O.defined()) parameters.push_back(tensors_.magnitude_O);
  return parameters;
}

at::Tensor LoraLinear::drop(const at::Tensor& x) const {
  if (!dropout_->mask) {
    return seeded_dropout(x, options_.dropout,
                          random_key(kDropout, dropout_->row_key, hash_name(module_)));
  }
  // Rounded to float32 first, like the scale of torch's dropout.
  const auto scale = static_cast<double>(static_cast<float>(1.0 / (1.0 - options_.dropout)));
  return x * dropout_->mask(module_, x.sizes()).to(x.device(), at::kBool) * scale;
}

at::Tensor LoraLinear::cast(const at::Tensor& tensor, Cast& kept, at::ScalarType dtype) const {
  if (tensor.scalar_type() == dtype) return tensor;
  const auto version = static_cast<uint32_t>(tensor._version());
  if (!kept.tensor.defined() || kept.version != version || kept.tensor.scalar_type() != dtype)
    kept = {tensor.detach().to(dtype), version};
  return CastGradient::apply(tensor, kept.tensor);
}

LoraLinear::Origin LoraLinear::origin(const at::Tensor& weight_OI) const {
  const auto version = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<uint32_t>(tensor._version()) : 0U;
  };
  return {weight_OI,
          {version(weight_OI), version(tensors_.a_rI), version(tensors_.b_Or),
           version(tensors_.magnitude_O)}};
}

const at::Tensor& LoraLinear::weight_norm_O(const LinearWeights& base) const {
  Origin now = origin(base.weight);
  if (norm_O_.defined() && norm_origin_ == now) return norm_O_;
  const at::NoGradGuard no_grad;
  const at::Tensor weight_OI =
      base.packed ? base.packed->dequantised(base.weight.scalar_type()) : base.weight;
  const at::Tensor a_Ir = tensors_.a_rI.t();
  norm_O_ = at::empty({weight_OI.size(0)}, tensors_.b_Or.options().requires_grad(false));
  for_slices(weight_OI, [&](int64_t begin, int64_t count) {
    // B(A(identity)) for these rows
    const at::Tensor delta = at::mm(a_Ir, tensors_.b_Or.narrow(0, begin, count).t()).t();
    norm_O_.narrow(0, begin, count)
        .copy_(row_norms(weight_OI.narrow(0, begin, count).to(at::kFloat) + delta * scaling()));
  });
  norm_origin_ = std::move(now);
  return norm_O_;
}

at::Tensor LoraLinear::merged_weight_OI(const at::Tensor& weight_OI) const {
  if (!keeps_merged_) return merge_lora(weight_OI, tensors_, scaling());
  Origin now = origin(weight_OI);
  if (!merged_OI_.defined() || !(merged_origin_ == now)) {
    merged_OI_ = merge_lora(weight_OI, tensors_, scaling());
    merged_origin_ = std::move(now);
  }
  return merged_OI_;
}

// A training row also has passes without gradients (a recomputed head), which must not use the
// merged weight.
bool LoraLinear::multiplies_merged(const LinearWeights& base) const {
  return !at::GradMode::is_enabled() && !dropout_->active && !base.packed;
}

bool LoraLinear::drops() const { return dropout_->active && options_.dropout > 0; }

at::Tensor LoraLinear::forward(const at::Tensor& x, const LinearWeights& base,
                               Results results) const {
  if (multiplies_merged(base)) return affine(x, merged_weight_OI(base.weight), base.bias);
  merged_OI_.reset();
  // DoRA's gradients read a product of the base: of x, or with dropout of what it left (adapt()).
  const bool is_read = tensors_.magnitude_O.defined() && !drops();
  return adapt(x, base, base_linear(x, base, is_read ? Results::kRead : results));
}

// @param result  of the base
at::Tensor LoraLinear::adapt(const at::Tensor& x, const LinearWeights& base,
                             const at::Tensor& result) const {
  if (uses_device_kernels(x.device()) || x.scalar_type() != at::kFloat)
    return adapt_fused(x, base, result);
  const at::Tensor input = drops() ? drop(x) : x;
  const at::Tensor update = affine(affine(input, tensors_.a_rI), tensors_.b_Or);
  if (!tensors_.magnitude_O.defined()) return result + update * scaling();
  const at::Tensor ratio_O = tensors_.magnitude_O / weight_norm_O(base);
  // With dropout this term needs a separate base output; the first term has no dropout.
  const at::Tensor unbiased = drops()               ? without_bias(input, base)
                              : base.bias.defined() ? result - base.bias
                                                    : result;
  return result + ((ratio_O - 1) * unbiased + ratio_O * update * scaling());
}

// Products and sums in the dtype of x, with as few operators as possible. DoRA's term with dropout
// reads the base's weight as it is: no float32 copy of it.
at::Tensor LoraLinear::adapt_fused(const at::Tensor& x, const LinearWeights& base,
                                   const at::Tensor& result) const {
  const at::ScalarType dtype = x.scalar_type();
  const at::Tensor input = drops() ? drop(x) : x;
  const at::Tensor low = affine(input, cast(tensors_.a_rI, cast_a_, dtype)),
                   b_Or = cast(tensors_.b_Or, cast_b_, dtype);
  if (!tensors_.magnitude_O.defined()) {
    return at::addmm(result.flatten(0, -2), low.flatten(0, -2), b_Or.t(), 1, scaling())
        .view(result.sizes());
  }
  const at::Tensor update = affine(low, b_Or);
  const at::Tensor ratio_O = tensors_.magnitude_O / weight_norm_O(base);
  const at::Tensor unbiased = drops()               ? without_bias(input, base)
                              : base.bias.defined() ? result - base.bias
                                                    : result;
  return at::addcmul(at::addcmul(result, unbiased, (ratio_O - 1).to(dtype)), update,
                     (ratio_O * scaling()).to(dtype));
}

}  // namespace rematch
