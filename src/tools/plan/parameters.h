#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/settings/model.h"
#include "base/settings/tuner.h"
#include "model/families/description.h"

namespace rematch {

/// Size of a value in statistics, gradients, masters, moments and adapters, for every model dtype.
inline constexpr int64_t kFloatBytes = 4;

/// Checkpoint name and number of values of a parameter.
struct ParameterSize {
  std::string name;
  int64_t num_values = 0;
  int64_t packed_bytes = 0;   ///< of a weight in 4 bits; 0 = in full precision
  int64_t largest_block = 0;  ///< values of the largest layer; 0 = is in none
};

/// All parameters in a checkpoint of this model, vision tower first; without a tied head.
/// @param four_bit  how Linears are packed; nullopt = they are not
std::vector<ParameterSize> parameter_sizes(const ModelDescription& model,
                                           const std::optional<FourBitSettings>& four_bit = {});

/// Numbers of values of a model, as transformers' num_parameters() counts them.
struct ParameterCounts {
  int64_t total = 0;
  int64_t text = 0;
  int64_t vision = 0;  ///< tower and mergers

  bool operator==(const ParameterCounts&) const = default;
};

/// The parameters that a run trains, by name and in numbers of values.
struct TrainedParameters {
  ParameterCounts counts;         ///< of the model
  int64_t num_full = 0;           ///< values of the model itself
  int64_t num_adapter = 0;        ///< values of adapters, always float32
  int64_t num_text = 0;           ///< values of both in the language model
  bool trains_head = false;       ///< the head's matrix, which is the embedding when tied
  bool trains_embedding = false;  ///< the embedding's matrix
  bool reaches_mergers = false;
  std::set<std::string> full;     ///< parameters of the model that are trained
  std::set<std::string> adapted;  ///< modules with an adapter
  int64_t num_adapted = 0;        ///< values of their weights, without those in 4 bits
  int64_t num_packed = 0;         ///< values in 4 bits
  int64_t packed_bytes = 0;       ///< their bytes
  int64_t largest_packed = 0;     ///< values of the largest weight in 4 bits
  int64_t num_in_blocks = 0;      ///< with an adapter: values that `zero_stage: 3` shards
  int64_t num_whole = 0;          ///< most of them that are whole at a time: of two blocks

  int64_t num_values() const { return num_full + num_adapter; }
  bool operator==(const TrainedParameters&) const = default;
};

/// @throws UserError (config) as select_targets, for `tuner.target_modules` and the like; for a
///         weight in 4 bits in `tuner.modules_to_save`
TrainedParameters trained_parameters(const ModelDescription& model, const TunerSettings& tuner,
                                     const std::optional<FourBitSettings>& four_bit = {});

}  // namespace rematch
