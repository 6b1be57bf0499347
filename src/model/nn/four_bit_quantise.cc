#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "model/nn/four_bit.h"

namespace rematch {
namespace {

// Codes in the order of their values, and the bounds between neighbours.
struct SortedCodes {
  explicit SortedCodes(FourBitKind kind) {
    const std::array<float, 16>& values = four_bit_values(kind);
    std::array<int, 16> order{};
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int a, int b) { return values[a] < values[b]; });
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(order[i]);
    for (size_t i = 0; i < bounds.size(); ++i)
      bounds[i] = (values[codes[i]] + values[codes[i + 1]]) / 2;
  }

  /// The nearest value's code; the lower one of two as near.
  uint8_t find(float scaled) const {
    size_t index = 0;
    for (const float bound : bounds) index += scaled > bound ? 1 : 0;
    return codes[index];
  }

  std::array<float, 15> bounds{};
  std::array<uint8_t, 16> codes{};
};

// bitsandbytes divides the last block, if it is short, and multiplies the others by the inverse.
constexpr float kLeastAbsmax = 1e-38f;

void quantise_block(const SortedCodes& sorted, const float* values, int64_t count, bool is_short,
                    float* absmax, uint8_t* codes) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  if (is_short) most = std::max(most, kLeastAbsmax);
  *absmax = most;
  const float inverse = 1.0f / std::max(most, kLeastAbsmax);
  const auto code = [&](int64_t i) {
    const float scaled = is_short ? values[i] / most : values[i] * inverse;
    return static_cast<unsigned>(sorted.find(std::clamp(scaled, -1.0f, 1.0f)));
  };
  for (int64_t i = 0; i < count; i += 2) {
    const unsigned second = i + 1 < count ? code(i + 1) : sorted.find(0);
    codes[i / 2] = static_cast<uint8_t>(code(i) << 4 | second);
  }
}

void quantise_values(const at::Tensor& values, FourBitWeight& weight) {
  const SortedCodes sorted(weight.kind);
  const float* data = values.const_data_ptr<float>();
  float* absmax = weight.absmax.data_ptr<float>();
  uint8_t* codes = weight.codes.data_ptr<uint8_t>();
  constexpr int64_t kGrain = 256;  // blocks
  at::parallel_for(0, weight.num_blocks(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * weight.blocksize,
                    count = std::min(weight.blocksize, weight.num_values() - begin);
      quantise_block(sorted, data + begin, count, count < weight.blocksize, absmax + block,
                     codes + begin / 2);
    }
  });
}

// An 8-bit code: bitsandbytes rounds a value to a grid of 65536 points, then to the nearest entry.
uint8_t find_absmax_code(const float* map, float scaled) {
  constexpr float kGrid = 65535;
  const float clamped = std::clamp(scaled, -1.0f, 1.0f);
  const auto point = static_cast<int>((clamped + 1.0f) * 0.5f * kGrid + 0.5f);
  const float value = -1.0f + 2.0f * static_cast<float>(point) / kGrid;
  int low = 0, high = 255;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (0.5f * (map[middle] + map[middle + 1]) < value)
      low = middle + 1;
    else
      high = middle;
  }
  return static_cast<uint8_t>(low);
}

void quantise_absmax(FourBitWeight& weight) {
  const at::Tensor offset = weight.absmax.mean(), centred = weight.absmax - offset;
  const int64_t count = centred.numel(), size = weight.nested_blocksize,
                num_nested = (count + size - 1) / size;
  weight.offset = offset.item<float>();
  weight.nested_map = absmax_map();
  weight.nested_absmax = at::zeros({num_nested}, at::kFloat);
  weight.absmax = at::zeros({count}, at::kByte);
  const float* values = centred.const_data_ptr<float>();
  const float* map = weight.nested_map.const_data_ptr<float>();
  for (int64_t block = 0; block < num_nested; ++block) {
    const int64_t begin = block * size, end = std::min(begin + size, count);
    float most = 0;
    for (int64_t i = begin; i < end; ++i) most = std::max(most, std::abs(values[i]));
    weight.nested_absmax.data_ptr<float>()[block] = most;
    if (most == 0) continue;
    const float inverse = 1.0f / most;
    for (int64_t i = begin; i < end; ++i)
      weight.absmax.data_ptr<uint8_t>()[i] = find_absmax_code(map, values[i] * inverse);
  }
}

// A packed weight without values.
void shape_only(FourBitWeight& weight, const FourBitSettings& options, const at::Tensor& like) {
  const auto shape = [&](int64_t size, at::ScalarType dtype) {
    return at::empty({size}, like.options().dtype(dtype).requires_grad(false));
  };
  const int64_t num_blocks = weight.num_blocks();
  weight.codes = shape((weight.num_values() + 1) / 2, at::kByte);
  weight.absmax = shape(num_blocks, options.use_double_quant ? at::kByte : at::kFloat);
  if (!options.use_double_quant) return;
  const int64_t size = weight.nested_blocksize;
  weight.nested_absmax = shape((num_blocks + size - 1) / size, at::kFloat);
  weight.nested_map = shape(256, at::kFloat);
}

}  // namespace

at::Tensor absmax_map() {
  const at::NoGradGuard no_grad;
  // Seven decades; each has twice as many values as the one below it, the middles of equal parts
  // of 0.1 to 1.
  constexpr int kDecades = 7;
  constexpr double kScales[kDecades] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0};
  std::vector<float> values{0.0f, 1.0f};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int64_t count = int64_t{1} << decade;
    const at::Tensor ends = at::linspace(0.1, 1, count + 1, at::kFloat);
    const at::Tensor middles =
        (ends.narrow(0, 0, count) + ends.narrow(0, 1, count)) / 2.0 * kScales[decade];
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(middles.const_data_ptr<float>()[i]);
      values.push_back(-values.back());
    }
  }
  std::ranges::sort(values);
  return at::tensor(values, at::kFloat);
}

FourBitWeight quantise(const at::Tensor& weight_OI, const FourBitSettings& options,
                       int64_t blocksize) {
  const at::NoGradGuard no_grad;
  REMATCH_CHECK(weight_OI.dim() == 2 && blocksize > 0 && blocksize % 2 == 0,
                c10::str(weight_OI.sizes()));
  FourBitWeight weight{.kind = options.quant_type,
                       .num_outputs = weight_OI.size(0),
                       .num_inputs = weight_OI.size(1),
                       .blocksize = blocksize};
  if (weight_OI.is_meta()) {
    shape_only(weight, options, weight_OI);
    return weight;
  }
  REMATCH_CHECK(weight_OI.is_cpu(), weight_OI.device().str());
  weight.codes = at::empty({(weight.num_values() + 1) / 2}, at::kByte);
  weight.absmax = at::empty({weight.num_blocks()}, at::kFloat);
  quantise_values(weight_OI.detach().to(at::kFloat).contiguous(), weight);
  if (options.use_double_quant) quantise_absmax(weight);
  return weight;
}

}  // namespace rematch
