#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace rematch {

/// `tuner.train_type`.
enum class TrainType { kFull, kLora };
constexpr auto names_of(TrainType) {
  return std::to_array<EnumName<TrainType>>(
      {{TrainType::kFull, "full"}, {TrainType::kLora, "lora"}});
}

/// `tuner.freeze_*`: model parts that are not trained.
struct FreezeSettings {
  bool llm = false;
  bool vit = false;
  bool aligner = false;

  bool operator==(const FreezeSettings&) const = default;
};

/// The adapter of a Linear: `tuner.lora_*`, `tuner.use_dora`.
struct LoraSettings {
  int64_t rank = 8;  ///< ≥ 1
  double alpha = 32;
  double dropout = 0.05;  ///< dropout on the adapter's input in training, 0..1
  bool use_dora = false;

  /// The factor of B·A.
  double scaling() const { return alpha / static_cast<double>(rank); }

  bool operator==(const LoraSettings&) const = default;
};

/// The modules that get an adapter or are trained with it.
struct AdapterTargetSettings {
  Strings target_modules{"all-linear"};
  std::optional<std::string> target_regex;  ///< replaces target_modules
  Strings modules_to_save;                  ///< trained in full
  /// Tokens whose rows in embedding and head are trained: ids, token texts, or `coord_tokens`
  /// for all 1000.
  Strings trainable_token_indices;

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
