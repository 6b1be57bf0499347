#pragma once
#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "data/dataset.h"
#include "ranks/group.h"
#include "rollout/vllm/vllm_options.h"
#include "settings/settings.h"
#include "text/prompt.h"
#include "vision/patches.h"

namespace rematch {

/// The ranks that run one vLLM engine with this one: `vllm.tensor_parallel_size` neighbours. Null
/// when every rank has an engine of its own. Every rank calls it. @throws UserError (environment)
/// on all ranks: their number is no multiple; ranks of one engine on different hosts
std::unique_ptr<Group> ranks_of_engine(const Settings& settings, Group& group);

/// Options of the `vllm` backend from a configuration.
/// @param ranks  as ranks_of_engine(), outlives them
VllmOptions vllm_options_of(const Settings& settings, const at::Device& device, const Group& group,
                            Group* ranks = nullptr);

/// Completes them once the data is known: `max_model_len` holds the longest prompt and its answer.
/// Makes the directory of the engine's log.
/// @throws UserError (config) when it cannot, (environment) for the directory
void settle_vllm_options(VllmOptions& options, const Settings& settings,
                         const std::vector<const Dataset*>& data, const PromptEncoder& prompts,
                         const PatchOptions& patches);

}  // namespace rematch
