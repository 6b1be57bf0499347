#pragma once
#include "base/settings/settings.h"
#include "tools/plan/request.h"

namespace rematch {

/// Makes the input of a memory plan from the settings and the model's config.json. Reads no
/// weights. Without `global_max_length` samples of 4096 tokens are assumed, half of them image
/// pads.
/// @throws UserError (config) without config.json, and as describe_model
PlanRequest plan_request(const Settings& settings, const PlanDevice& device);

}  // namespace rematch
