#pragma once
#include <memory>

#include "engine/rollout/native/step.h"
#include "model/model.h"

namespace rematch {

/// Steps on the CPU: the decoder on the kernels of src/model/kernels, always in float32. Keys and
/// values are stored in the model's dtype.
///
/// The bits of a row's logits depend only on the tokens of its sequence, not on other rows, the
/// division of the prompt into steps, the blocks or the number of threads (at::get_num_threads()).
/// @param model  on the CPU; if its weights change between steps, call refresh()
std::unique_ptr<StepRunner> make_cpu_runner(std::shared_ptr<const Model> model);

}  // namespace rematch
