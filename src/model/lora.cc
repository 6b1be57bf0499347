#include "model/lora.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "nn/affine.h"
#include "nn/upload.h"

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

// An element is kept if its 32 random bits are at least this; 2³² keeps none.
uint64_t keep_threshold(double dropout) {
  return static_cast<uint64_t>(std::llround(dropout * 4294967296.0));
}

void fill_mask_cpu(bool* mask, int64_t count, uint64_t key, uint64_t threshold) {
  at::parallel_for(0, (count + 1) / 2, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      // Two elements share 64 bits.
      const uint64_t bits = random_bits(key, static_cast<uint64_t>(pair));
      mask[2 * pair] = (bits & 0xffffffffULL) >= threshold;
      if (2 * pair + 1 < count) mask[2 * pair + 1] = (bits >> 32) >= threshold;
    }
  });
}

}  // namespace

LoraTensors initial_lora(const at::Tensor& weight_OI, const LoraSettings& options,
                         const std::string& module, uint64_t seed) {
  const at::NoGradGuard no_grad;
  const auto float32 = at::TensorOptions().dtype(at::kFloat);
  const int64_t width = weight_OI.size(1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  const uint64_t key = random_key({kInitialA, seed, hash_name(module)});
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
  for_slices(weight_OI, [&](int64_t begin, int64_t count) {
    const at::Tensor delta = at::mm(tensors.b_Or.narrow(0, begin, count), tensors.a_rI) * scaling;
    at::Tensor rows = weight_OI.narrow(0, begin, count).to(at::kFloat) + delta;
    if (tensors.magnitude_O.defined())
      rows = (tensors.magnitude_O.narrow(0, begin, count) / row_norms(rows)).unsqueeze(1) * rows;
    merged.narrow(0, begin, count).copy_(rows);
  });
  return merged;
}

at::Tensor dropout_mask(uint64_t key, at::IntArrayRef sizes, double dropout, at::Device device) {
  const at::NoGradGuard no_grad;
  at::Tensor mask = at::empty(sizes, at::TensorOptions().dtype(at::kBool));
  fill_mask_cpu(mask.data_ptr<bool>(), mask.numel(), key, keep_threshold(dropout));
  return upload(mask, device);
}

LoraLinear::LoraLinear(std::string module, const LoraSettings& options, LoraTensors tensors,
                       std::shared_ptr<const LoraDropout> dropout)
    : module_(std::move(module)),
      options_(options),
      tensors_(std::move(tensors)),
      dropout_(std::move(dropout)) {
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
  const uint64_t key = random_key({kDropout, dropout_->row_key, hash_name(module_)});
  const at::Tensor mask = dropout_->mask
                              ? dropout_->mask(module_, x.sizes()).to(at::kBool)
                              : dropout_mask(key, x.sizes(), options_.dropout, x.device());
  const double keep = 1.0 - options_.dropout;
  // Rounded to float32 first, like the scale of torch's dropout.
  const auto scale = static_cast<double>(static_cast<float>(keep > 0 ? 1.0 / keep : 0.0));
  return x * mask * scale;
}

LoraLinear::Origin LoraLinear::origin(const at::Tensor& weight_OI) const {
  const auto version = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<uint32_t>(tensor._version()) : 0U;
  };
  return {weight_OI,
          {version(weight_OI), version(tensors_.a_rI), version(tensors_.b_Or),
           version(tensors_.magnitude_O)}};
}

const at::Tensor& LoraLinear::weight_norm_O(const at::Tensor& weight_OI) const {
  Origin now = origin(weight_OI);
  if (norm_O_.defined() && norm_origin_ == now) return norm_O_;
  const at::NoGradGuard no_grad;
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

const at::Tensor& LoraLinear::merged_weight_OI(const at::Tensor& weight_OI) const {
  Origin now = origin(weight_OI);
  if (!merged_OI_.defined() || !(merged_origin_ == now)) {
    merged_OI_ = merge_lora(weight_OI, tensors_, scaling());
    merged_origin_ = std::move(now);
  }
  return merged_OI_;
}

at::Tensor LoraLinear::forward(const at::Tensor& x, const LinearWeights& base) const {
  // A training row also has passes without gradients (a recomputed head), which must not use the
  // merged weight.
  if (!at::GradMode::is_enabled() && !dropout_->active)
    return affine(x, merged_weight_OI(base.weight), base.bias);
  merged_OI_.reset();
  const bool drops = dropout_->active && options_.dropout > 0;
  const at::Tensor result = affine(x, base.weight, base.bias);
  const at::Tensor input = drops ? drop(x.to(at::kFloat)) : x.to(at::kFloat);
  const at::Tensor update = affine(affine(input, tensors_.a_rI), tensors_.b_Or);
  if (!tensors_.magnitude_O.defined())
    return (result + update * scaling()).to(result.scalar_type());
  const at::Tensor ratio_O = tensors_.magnitude_O / weight_norm_O(base.weight);
  // With dropout this term needs a separate base output; the first term has no dropout.
  const at::Tensor unbiased = drops                 ? affine(input, base.weight.to(at::kFloat))
                              : base.bias.defined() ? result - base.bias
                                                    : result;
  return (result + ((ratio_O - 1) * unbiased + ratio_O * update * scaling()))
      .to(result.scalar_type());
}

}  // namespace rematch
