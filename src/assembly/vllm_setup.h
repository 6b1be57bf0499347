#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "data/dataset.h"
#include "dist/group.h"
#include "rollout/vllm/vllm_options.h"
#include "settings/settings.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

/// Options of the `vllm` backend from a configuration.
VllmOptions vllm_options_of(const Settings& settings, const at::Device& device, const Group& group);

/// Completes them once the data is known: `max_model_len` holds the longest prompt and its answer. Makes the directory of the engine's log.
/// @throws UserError (config) when it cannot, (environment) for the directory
void settle_vllm_options(VllmOptions& options, const Settings& settings, const std::vector<const Dataset*>& data,
                         const PromptEncoder& prompts, const PatchOptions& patches);

}  // namespace rematch
