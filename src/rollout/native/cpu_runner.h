#pragma once
#include <memory>

#include "rollout/native/step.h"
#include "model/model.h"

namespace rematch {

/// Steps on the CPU: the decoder written out on the kernels of src/kernels, in float32 whatever the weights' dtype, on the training weights
/// where they lie. Keys and values are kept in the model's dtype.
///
/// The bits of a row's logits depend on its own sequence's tokens alone: not on the other rows, on how the prompt was cut, on the blocks or
/// their length, on the number of threads. Takes as many threads as at::get_num_threads() says at each step.
/// @param model  on the CPU; may change its weights between steps, refresh() then
std::unique_ptr<StepRunner> make_cpu_runner(std::shared_ptr<const Model> model);

}  // namespace rematch
