#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/enum_names.h"

namespace rematch {

/// `model.torch_dtype`.
enum class ModelDtype { kAuto, kBfloat16, kFloat32 };
inline constexpr EnumName<ModelDtype> kModelDtypes[] = {{ModelDtype::kAuto, "auto"},
                                                        {ModelDtype::kBfloat16, "bfloat16"},
                                                        {ModelDtype::kFloat32, "float32"}};
constexpr std::span<const EnumName<ModelDtype>> names_of(ModelDtype) { return kModelDtypes; }

/// `model.*` and the limit on lengths.
struct ModelSettings {
  /// Hugging Face directory, relative to the current directory
  std::string directory;
  ModelDtype dtype = ModelDtype::kAuto;  ///< kAuto: bfloat16 on GPU, float32 on CPU
  /// most tokens in a segment and in a packed row; none = no limit
  std::optional<int64_t> global_max_length;
  bool gradient_checkpointing = false;

  bool operator==(const ModelSettings&) const = default;
};

}  // namespace rematch
