#pragma once
#include <vector>

#include "config/schema.h"
#include "settings/settings.h"

namespace rematch {

/// A struct among all settings, e.g. `part<&Settings::tuner, &TunerSettings::lora>`; `part<>` is
/// the whole.
template <auto... Members>
auto& part(Settings& all) {
  return (all.*....*Members);
}

/// Lists one after the other.
std::vector<KeySpec> joined_keys(std::vector<std::vector<KeySpec>> parts);

// Parts of the table of keys (config/schema.h).
std::vector<KeySpec> model_keys();
std::vector<KeySpec> training_keys();
std::vector<KeySpec> output_keys();
std::vector<KeySpec> custom_keys();
std::vector<KeySpec> coord_loss_keys();       ///< custom.coord_soft_ce_w1
std::vector<KeySpec> coord_loss_overrides();  ///< stage 2's own
std::vector<KeySpec> rollout_keys();
std::vector<KeySpec> vllm_keys();
std::vector<KeySpec> monitor_keys();
std::vector<KeySpec> foreign_keys();
std::vector<KeySpec> removed_keys();

}  // namespace rematch
