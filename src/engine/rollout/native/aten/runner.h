#pragma once
#include <memory>

#include "engine/rollout/native/aten/step_graph.h"
#include "engine/rollout/native/step.h"
#include "model/model.h"

namespace rematch {

/// A runner of plain ATen operators on the model's own forward pass: any device, any dtype. Used on
/// CUDA, and the reference that the CPU kernels are tested against. Decodes attend together over a
/// gathered copy of their keys and values, prefill chunks one by one.
///
/// Unlike the CPU kernels it leaves the order of sums to ATen: the same step gives the same bits,
/// but a row's last bits may depend on which rows share the step. Steps in which every sequence
/// decodes are replayed as graphs if the device supports them (decode_graphs.h). On a device it can
/// choose tokens (engine/rollout/device_sampler.h).
/// @param model   shared with training; never written to
/// @param graphs  empty = never replay
/// @param sampling  of choose()
std::unique_ptr<StepRunner> make_aten_runner(std::shared_ptr<const Model> model,
                                             StepGraphMaker graphs,
                                             const GenerateOptions& sampling = {});
/// With the graphs of the model's device.
std::unique_ptr<StepRunner> make_aten_runner(std::shared_ptr<const Model> model,
                                             const GenerateOptions& sampling = {});

}  // namespace rematch
