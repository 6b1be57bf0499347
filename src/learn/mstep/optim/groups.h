#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "base/settings/tuner.h"
#include "learn/mstep/optim/adamw.h"
#include "model/families/description.h"

namespace rematch {

/// True for weights of norms, for biases and for other vectors that are no `.weight` (decays of a
/// recurrence), which have no weight decay.
bool is_undecayed(const std::string& name);

/// Sets requires_grad of every parameter by `freeze` and groups the trainable ones: vit, aligner,
/// llm, each with weight decay then without (".no_decay"). Omits empty groups; keeps the given
/// order inside a group.
/// @param parameters  leaves with their checkpoint names
/// @param part_of     of the model's description
std::vector<ParameterGroup> make_groups(const NamedTensors& parameters,
                                        const ParameterParts& part_of, const OptimSettings& optim,
                                        const FreezeSettings& freeze = {});

}  // namespace rematch
