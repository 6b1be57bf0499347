#pragma once
#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/ranks/group.h"
#include "engine/rollout/vllm/vllm_options.h"
#include "program/assembly/open.h"

namespace rematch {

/// Makes the group of the ranks that share a vLLM engine: `vllm.tensor_parallel_size` neighbours.
/// Null when each rank has its own engine. Every rank calls it.
/// @throws UserError (environment) on all ranks when their number is not a multiple, or ranks of an
/// engine are on different hosts
std::unique_ptr<Group> split_engine_ranks(const Settings& settings, Group& group);

/// Makes the options of the `vllm` backend.
/// @param ranks  result of split_engine_ranks(); must outlive the options
VllmOptions make_vllm_options(const Settings& settings, const at::Device& device,
                              const Group& group, Group* ranks = nullptr);

/// Completes the options for the data: `max_model_len` must fit the longest prompt and its answer.
/// Creates the directory of the engine's log.
/// @throws UserError (config) when it does not fit, (environment) for the directory
void settle_vllm_options(VllmOptions& options, const Settings& settings,
                         const std::vector<const Dataset*>& data, const ModelFiles& files);

}  // namespace rematch
