#include "model/nn/dropout.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/random.h"
#include "model/nn/device_kernels.h"

// One loop for all processors: 32-bit integers, the same bits whatever the width of a register. At
// -O2 GCC vectorises no loop of unknown length.
#if defined(__x86_64__) && defined(__clang__)
#define REMATCH_FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#elif defined(__x86_64__)
#define REMATCH_FOR_EACH_PROCESSOR \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define REMATCH_FOR_EACH_PROCESSOR
#endif

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Which values of a row stay, and by what they are multiplied.
struct Draw {
  uint32_t first, second;  ///< keys of the row
  uint32_t threshold;      ///< a value stays if its bits are at least this
  float scale;
};

// Bits number i of a row: multiply and shift, with constants from the search "hash-prospector"
// (public domain), and a second key between the rounds, so that two rows are not two windows of
// one stream.
inline uint32_t bits_of(uint32_t i, const Draw& draw) {
  uint32_t z = i + draw.first;
  z = (z ^ (z >> 16)) * 0x7feb352dU;
  z += draw.second;
  z = (z ^ (z >> 15)) * 0x846ca68bU;
  return z ^ (z >> 16);
}

// All ones if value number i stays, else zero: a branch would keep the loop from being vectorised.
inline uint32_t mask_of(int64_t i, const Draw& draw) {
  return 0U - static_cast<uint32_t>(bits_of(static_cast<uint32_t>(i), draw) >= draw.threshold);
}

REMATCH_FOR_EACH_PROCESSOR
void drop_row(const float* x, int64_t width, const Draw draw, float* y) {
  for (int64_t i = 0; i < width; ++i) {
    const auto bits = std::bit_cast<uint32_t>(x[i] * draw.scale);
    y[i] = std::bit_cast<float>(bits & mask_of(i, draw));
  }
}

// Values of bfloat16 are the upper halves of float32; rounds to nearest even. Not a number stays
// one, because its payload is in the upper half.
REMATCH_FOR_EACH_PROCESSOR
void drop_row_bfloat16(const uint16_t* x, int64_t width, const Draw draw, uint16_t* y) {
  for (int64_t i = 0; i < width; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16) * draw.scale;
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    y[i] = static_cast<uint16_t>(rounded & mask_of(i, draw));
  }
}

at::Tensor drop_on_cpu(const at::Tensor& values, double dropout, uint64_t seed) {
  const at::Tensor x = values.contiguous();
  at::Tensor y = at::empty_like(x);
  if (x.is_meta() || x.numel() == 0) return y;
  const int64_t width = x.size(-1);
  Draw common{};
  common.threshold = static_cast<uint32_t>(std::min(std::llround(dropout * 0x1p32), 0xffffffffLL));
  common.scale = static_cast<float>(1.0 / (1.0 - dropout));
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / width);
  at::parallel_for(0, x.numel() / width, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint64_t key = random_bits(seed, static_cast<uint64_t>(row));
      Draw draw = common;
      draw.first = static_cast<uint32_t>(key);
      draw.second = static_cast<uint32_t>(key >> 32);
      if (x.scalar_type() == at::kFloat) {
        drop_row(x.const_data_ptr<float>() + row * width, width, draw,
                 y.mutable_data_ptr<float>() + row * width);
      } else {
        const auto* from = static_cast<const uint16_t*>(x.const_data_ptr());
        drop_row_bfloat16(from + row * width, width, draw,
                          static_cast<uint16_t*>(y.mutable_data_ptr()) + row * width);
      }
    }
  });
  return y;
}

struct CpuDropout : torch::autograd::Function<CpuDropout> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double dropout,
                            int64_t seed) {
    context->saved_data["dropout"] = dropout;
    context->saved_data["seed"] = seed;
    return drop_on_cpu(x, dropout, static_cast<uint64_t>(seed));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {drop_on_cpu(gradients[0], context->saved_data["dropout"].toDouble(),
                        static_cast<uint64_t>(context->saved_data["seed"].toInt())),
            at::Tensor(), at::Tensor()};
  }
};

// Seeds the default generator of a device, which native_dropout() draws from, and restores it.
class SeededGenerator {
 public:
  SeededGenerator(const at::Device& device, uint64_t seed)
      : generator_(at::globalContext().defaultGenerator(device)) {
    const std::lock_guard lock(generator_.mutex());
    before_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededGenerator() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(before_);
  }
  SeededGenerator(const SeededGenerator&) = delete;
  SeededGenerator& operator=(const SeededGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor before_;  // on the host
};

}  // namespace

at::Tensor seeded_dropout(const at::Tensor& x, double dropout, uint64_t seed) {
  if (!uses_device_kernels(x.device())) {
    REMATCH_CHECK(
        x.dim() > 0 && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16),
        at::toString(x.scalar_type()));
    return CpuDropout::apply(x, dropout, static_cast<int64_t>(seed));
  }
  if (x.is_meta()) return std::get<0>(at::native_dropout(x, dropout, /*train=*/true));
  const SeededGenerator seeded(x.device(), seed);
  return std::get<0>(at::native_dropout(x, dropout, /*train=*/true));
}

}  // namespace rematch
