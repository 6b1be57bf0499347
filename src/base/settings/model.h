#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace rematch {

/// `model.torch_dtype`.
enum class ModelDtype { kAuto, kBfloat16, kFloat32 };
inline constexpr EnumName<ModelDtype> kModelDtypes[] = {{ModelDtype::kAuto, "auto"},
                                                        {ModelDtype::kBfloat16, "bfloat16"},
                                                        {ModelDtype::kFloat32, "float32"}};
constexpr std::span<const EnumName<ModelDtype>> names_of(ModelDtype) { return kModelDtypes; }

/// `training.gradient_checkpointing`: what a decoder layer keeps for the backward pass.
enum class Checkpointing {
  kOff,        ///< everything that the backward pass reads
  kOn,         ///< its input
  kSelective,  ///< its input and the results of its products
};
inline constexpr EnumName<Checkpointing> kCheckpointings[] = {
    {Checkpointing::kOff, "false"},
    {Checkpointing::kOn, "true"},
    {Checkpointing::kSelective, "selective"}};
constexpr std::span<const EnumName<Checkpointing>> names_of(Checkpointing) {
  return kCheckpointings;
}

/// `model.bnb_4bit_quant_type`: a table of 16 values.
enum class FourBitKind { kNf4, kFp4 };
inline constexpr EnumName<FourBitKind> kFourBitKinds[] = {{FourBitKind::kNf4, "nf4"},
                                                          {FourBitKind::kFp4, "fp4"}};
constexpr std::span<const EnumName<FourBitKind>> names_of(FourBitKind) { return kFourBitKinds; }

/// Quantisation of weights to four bits: `model.bnb_4bit_*`.
struct FourBitSettings {
  FourBitKind quant_type = FourBitKind::kNf4;
  bool use_double_quant = false;  ///< the statistics of blocks take 8 bits, not 32
  /// Names of modules, or whole components of them, whose Linears stay as they are.
  std::vector<std::string> skip_modules = {};

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
