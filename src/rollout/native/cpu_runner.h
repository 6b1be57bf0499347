#pragma once
#include <memory>

#include "rollout/native/step.h"
#include "model/model.h"

namespace rematch {

/// Steps on the CPU: the decoder on the kernels of src/kernels, in float32 whatever the weights'
/// dtype, on the training weights in place. Keys and values are stored in the model's dtype.
///
/// The bits of a row's logits depend on its own sequence's tokens alone: not on the other rows, on
/// how the prompt is cut, on the blocks or their length, on the number of threads. Uses
/// at::get_num_threads() threads at each step.
/// @param model  on the CPU; if its weights change between steps, call refresh()
std::unique_ptr<StepRunner> make_cpu_runner(std::shared_ptr<const Model> model);

}  // namespace rematch
