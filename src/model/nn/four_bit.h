#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/settings/model.h"
#include "model/nn/results.h"

namespace rematch {

// Weights of four bits as bitsandbytes packs them. A weight's values, row after row, are cut into
// blocks; a value is a table's entry times the absolute maximum of its block (absmax). With double
// quantisation absmax itself is 8 bits.

/// The values of the codes 0 to 15.
const std::array<float, 16>& four_bit_values(FourBitKind kind);

/// The 256 values of an 8-bit absmax, sorted (bitsandbytes' dynamic map): float32 on the CPU.
at::Tensor absmax_map();

/// A packed weight. All tensors are on one device.
struct FourBitWeight {
  FourBitKind kind = FourBitKind::kNf4;
  int64_t num_outputs = 0, num_inputs = 0;
  int64_t blocksize = 64;
  at::Tensor codes;   ///< uint8, two values each, the first in the high bits
  at::Tensor absmax;  ///< of each block: float32, or uint8 with double quantisation
  // Double quantisation: absmax = map[code] · nested_absmax + offset; else undefined.
  at::Tensor nested_absmax;  ///< float32, of blocks of nested_blocksize
  at::Tensor nested_map;     ///< float32 [256]
  int64_t nested_blocksize = 256;
  float offset = 0;
  /// A value is rounded to it, then to the dtype that is asked for, as bitsandbytes does.
  at::ScalarType rounded_to = at::kFloat;
  at::Tensor pairs;  ///< on a device other than the CPU: the two values of each byte, [256, 2]

  int64_t num_values() const { return num_outputs * num_inputs; }
  int64_t num_blocks() const { return (num_values() + blocksize - 1) / blocksize; }
  /// Bytes of all tensors.
  int64_t num_bytes() const;
  /// All that determines the values, for comparing weights: tensors, kind, sizes and offset.
  std::vector<at::Tensor> parts() const;
  /// A copy on another device.
  FourBitWeight to(const at::Device& device) const;

  /// The absmax of each block, float32.
  at::Tensor block_absmax() const;
  /// The weight [num_outputs, num_inputs], a new tensor: the bits of bitsandbytes' CPU library.
  /// @param dtype  float32, bfloat16 or float16
  at::Tensor dequantised(at::ScalarType dtype) const;
};

/// FourBitWeight::dequantised() with torch's operators, on any device: the same bits.
at::Tensor dequantise_by_operators(const FourBitWeight& weight, at::ScalarType dtype);

/// Blocks of this many values are what bitsandbytes chooses by default.
inline constexpr int64_t kFourBitBlock = 64;

/// Packs a weight: codes and absmax are those of bitsandbytes on a CPU.
/// @param weight_OI  finite, on the CPU, or a tensor on the meta device: then without values
/// @param blocksize  even
FourBitWeight quantise(const at::Tensor& weight_OI, const FourBitSettings& options,
                       int64_t blocksize = kFourBitBlock);

/// x·Wᵀ + b, differentiable in x (and in a bias). Autograd keeps only the packed weight: both
/// passes dequantise it in x's dtype.
/// @param results  kUnread: zeros, and nothing is dequantised for them
at::Tensor four_bit_affine(const at::Tensor& x, const std::shared_ptr<const FourBitWeight>& weight,
                           const at::Tensor& bias = {}, Results results = Results::kRead);

}  // namespace rematch
