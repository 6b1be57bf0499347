#pragma once
#include "plan/request.h"
#include "settings/settings.h"

namespace rematch {

/// What a plan of a configured run is made from: its settings and the config.json of its model.
/// Reads no weights. Without `global_max_length` samples of 4096 tokens are assumed, half of them
/// image pads.
/// @throws UserError (config) without config.json, and as describe_model
PlanRequest plan_request(const Settings& settings, const PlanDevice& device);

}  // namespace rematch
