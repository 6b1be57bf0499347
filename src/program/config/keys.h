#pragma once
#include <vector>

#include "base/settings/settings.h"
#include "program/config/schema.h"

namespace rematch {

/// A struct inside the settings, e.g. `part<&Settings::tuner, &TunerSettings::lora>`; `part<>`
/// returns all settings.
template <auto... Members>
auto& part(Settings& all) {
  return (all.*....*Members);
}

/// Concatenates lists of keys.
std::vector<KeySpec> join_keys(std::vector<std::vector<KeySpec>> parts);

// Parts of the table of keys (program/config/schema.h).
std::vector<KeySpec> model_keys();
std::vector<KeySpec> training_keys();
std::vector<KeySpec> output_keys();
std::vector<KeySpec> custom_keys();
std::vector<KeySpec> coord_loss_keys();       ///< custom.coord_soft_ce_w1
std::vector<KeySpec> coord_loss_overrides();  ///< the same settings for stage 2 only
std::vector<KeySpec> rollout_keys();
std::vector<KeySpec> vllm_keys();
std::vector<KeySpec> monitor_keys();
std::vector<KeySpec> origin_keys();  ///< ignored and refused keys

}  // namespace rematch
