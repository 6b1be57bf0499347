#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace rematch {

/// `tuner.train_type`.
enum class TrainType { kFull, kLora };
inline constexpr EnumName<TrainType> kTrainTypes[] = {{TrainType::kFull, "full"},
                                                      {TrainType::kLora, "lora"}};
constexpr std::span<const EnumName<TrainType>> names_of(TrainType) { return kTrainTypes; }

/// `tuner.freeze_*`: parts of the model that are not trained.
struct FreezeSettings {
  bool llm = false;
  bool vit = false;
  bool aligner = false;

  bool operator==(const FreezeSettings&) const = default;
};

/// One adapter of a Linear: `tuner.lora_*`, `tuner.use_dora`.
struct LoraSettings {
  int64_t rank = 8;  ///< ≥ 1
  double alpha = 32;
  double dropout = 0.05;  ///< of the adapter's input while training, 0..1
  bool use_dora = false;

  /// The factor of B·A.
  double scaling() const { return alpha / static_cast<double>(rank); }

  bool operator==(const LoraSettings&) const = default;
};

/// Which modules get an adapter.
struct AdapterTargetSettings {
  std::vector<std::string> target_modules{"all-linear"};
  std::optional<std::string> target_regex;   ///< instead of target_modules
  std::vector<std::string> modules_to_save;  ///< trained in full
  /// Tokens with trained rows of embedding and head: ids, texts of tokens, or `coord_tokens`
  /// for all 1000.
  std::vector<std::string> trainable_token_indices;

  bool operator==(const AdapterTargetSettings&) const = default;
};

/// `tuner.*`.
struct TunerSettings {
  TrainType train_type = TrainType::kFull;
  FreezeSettings freeze;
  LoraSettings lora;
  AdapterTargetSettings targets;

  bool operator==(const TunerSettings&) const = default;
};

}  // namespace rematch
