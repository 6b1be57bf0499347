#include <fmt/core.h>

#include "engine/ranks/device.h"
#include "engine/ranks/phase.h"
#include "model/adapter.h"
#include "model/checkpoint/peft.h"
#include "model/model.h"
#include "model/nn/attention_choice.h"
#include "program/assembly/adapter_setup.h"
#include "program/assembly/inputs_identity.h"
#include "program/assembly/job.h"

namespace rematch {
namespace {

/// @param directory  of the weights
std::shared_ptr<Model> load_weights(const Job& job, const std::string& directory) {
  const ModelSettings& settings = job.settings().model;
  std::shared_ptr<Model> model =
      Model::load(directory, {.dtype = dtype_on(job.device, settings.dtype),
                              .device = job.device,
                              .gradient_checkpointing = settings.gradient_checkpointing,
                              .four_bit = settings.quantisation()});
  job.terminal.say(fmt::format("model     {} ({}, {})", settings.directory,
                               model->dtype() == at::kBFloat16 ? "bfloat16" : "float32",
                               describe_device(job.device)));
  if (model->num_packed() > 0) {
    job.terminal.say(fmt::format("4 bits    {} of {} Linear layers", model->num_packed(),
                                 model->linears().size()));
  }
  if (job.source.checkpoint.is_adapter) job.terminal.say("adapter   " + job.source.checkpoint.path);
  if (!job.device.is_cpu()) {
    const ModelDescription& parts = model->description();
    job.terminal.say("attention: " +
                     describe_attention(job.device, model->dtype(),
                                        {parts.text.head_dim, parts.vision.head_dim()}));
  }
  for (const std::string& name : model->unused_tensors())
    job.terminal.warn(fmt::format("the checkpoint's tensor {} is not used by this model", name));
  return model;
}

/// Attaches the adapter that a command asks.
void attach_asked_adapter(Model& model, const Job& job) {
  const std::string& path = job.source.checkpoint.path;
  if (job.settings().backend == "vllm") {
    throw UserError(ErrorKind::kConfig,
                    {.error = "vLLM does not answer for an adapter here",
                     .where = "custom.extra.rollout_matching.rollout_backend",
                     .what = path + " is an adapter",
                     .fix = "use `native`, or merge it: rematch merge " + path + " --out DIR"});
  }
  const PeftAdapter adapter = read_peft_adapter(path);
  load_adapter(model,
               {.adapter = adapter,
                .adapter_dir = path,
                .base_dir = job.settings().model.directory,
                .force_base = job.source.force_base},
               job.terminal);
}

std::shared_ptr<Model> load_here(const Job& job, const std::string& weights) {
  const Settings& settings = job.settings();
  const bool trains_adapter =
      settings.tuner.train_type == TrainType::kLora && job.use == Use::kTrain;
  const bool starts_at_base = weights.empty() || trains_adapter;
  std::shared_ptr<Model> model =
      load_weights(job, starts_at_base ? settings.model.directory : weights);
  if (trains_adapter) attach_adapter(*model, settings, *job.files.format, weights, job.terminal);
  if (job.source.checkpoint.is_adapter) attach_asked_adapter(*model, job);
  return model;
}

}  // namespace

std::shared_ptr<Model> load_model(const Job& job, const std::string& weights) {
  std::shared_ptr<Model> model;
  run_phase(job.group, "start", [&] {
    model = load_here(job, weights);
    meet_with_inputs(job, *model);
  });
  return model;
}

}  // namespace rematch
