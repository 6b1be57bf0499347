#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace rematch {

/// `model.torch_dtype`.
enum class ModelDtype { kAuto, kBfloat16, kFloat32 };
constexpr auto names_of(ModelDtype) {
  using enum ModelDtype;
  return std::to_array<EnumName<ModelDtype>>(
      {{kAuto, "auto"}, {kBfloat16, "bfloat16"}, {kFloat32, "float32"}});
}

/// `training.gradient_checkpointing`: what a decoder layer keeps for the backward pass.
enum class Checkpointing {
  kOff,        ///< everything that the backward pass reads
  kOn,         ///< its input
  kSelective,  ///< its input and the results of its products
};
constexpr auto names_of(Checkpointing) {
  using enum Checkpointing;
  return std::to_array<EnumName<Checkpointing>>(
      {{kOff, "false"}, {kOn, "true"}, {kSelective, "selective"}});
}

/// `model.bnb_4bit_quant_type`: a table of 16 values.
enum class FourBitKind { kNf4, kFp4 };
constexpr auto names_of(FourBitKind) {
  return std::to_array<EnumName<FourBitKind>>(
      {{FourBitKind::kNf4, "nf4"}, {FourBitKind::kFp4, "fp4"}});
}

/// Quantisation of weights to four bits: `model.bnb_4bit_*`.
struct FourBitSettings {
  FourBitKind quant_type = FourBitKind::kNf4;
  bool use_double_quant = false;  ///< the statistics of blocks take 8 bits, not 32
  /// Names of modules, or whole components of them, whose Linears stay as they are.
  Strings skip_modules = {};

  bool operator==(const FourBitSettings&) const = default;
};

/// `model.*` and the limit on lengths.
struct ModelSettings {
  /// Hugging Face directory, relative to the current directory
  std::string directory;
  ModelDtype dtype = ModelDtype::kAuto;  ///< kAuto: bfloat16 on GPU, float32 on CPU
  /// most tokens in a segment and in a packed row; none = no limit
  std::optional<int64_t> global_max_length;
  Checkpointing gradient_checkpointing = Checkpointing::kOff;
  bool load_in_4bit = false;  ///< quantise the Linears of the base model while it is loaded
  FourBitSettings four_bit;

  /// Quantisation of the weights at load time; nullopt = none.
  std::optional<FourBitSettings> quantisation() const {
    return load_in_4bit ? std::optional(four_bit) : std::nullopt;
  }

  bool operator==(const ModelSettings&) const = default;
};

}  // namespace rematch
