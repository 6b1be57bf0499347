#include "program/assembly/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/ranks/phase.h"
#include "engine/rollout/engine_factory.h"
#include "model/text/stop_ids.h"
#include "program/assembly/load_model.h"
#include "program/assembly/parts.h"
#include "program/assembly/vllm_setup.h"

namespace rematch {
namespace {

std::vector<at::Tensor> parameter_tensors(const Model& model) {
  std::vector<at::Tensor> tensors;
  for (const NamedParameter& parameter : all_parameters(model))
    if (!parameter.need) tensors.push_back(parameter.tensor);  // shards stay
  return tensors;
}

std::unique_ptr<Offload> make_offload(const Job& job, const std::shared_ptr<Model>& model,
                                      std::unique_ptr<TensorMover> mover) {
  const Settings& settings = job.settings();
  Terminal& terminal = job.terminal;
  if (!settings.offload.moves_model() && !settings.offload.moves_optimizer()) return nullptr;
  if (!rollout_backends().find(settings.backend).holds_own_weights) {
    terminal.say(fmt::format(
        "offload has no effect with rollout_backend {}: it generates with the training weights",
        settings.backend));
    return nullptr;
  }
  if (!mover->is_on_device(model->parameters().front().tensor)) {
    terminal.say(fmt::format(
        "offload has no effect on {}: training state is already in host memory", job.device.str()));
    return nullptr;
  }
  const auto warn = [&terminal](const std::string& text) { terminal.warn(text); };
  return std::make_unique<Offload>(
      Offload::Options{.settings = settings.offload, .warn = warn},
      [model] { return parameter_tensors(*model); }, std::move(mover));
}

/// The options of the `vllm` backend, completed for the data; defaults for other backends.
VllmOptions vllm_options(const Job& job) {
  const Settings& settings = job.settings();
  if (settings.backend != "vllm") return {};
  std::vector<const Dataset*> data;
  if (job.data.train) data.push_back(&*job.data.train);
  if (job.data.val) data.push_back(&*job.data.val);
  VllmOptions options = make_vllm_options(settings, job.device, job.group, job.engine_ranks.get());
  settle_vllm_options(options, settings, data, job.files);
  return options;
}

}  // namespace

Engine start_engine(const Job& job, const std::shared_ptr<Model>& model,
                    const GenerationSettings& generation, std::unique_ptr<TensorMover> mover) {
  const Settings& settings = job.settings();
  GenerateOptions generate{generation, settings.seed,
                           read_stop_ids(settings.model.directory, *job.files.tokenizer)};
  generate.repeat_terminate.entry_key = answer_formats().find(job.files.format_name).entry_key;
  Engine started{.stop_ids = generate.stop_ids,
                 .batch_size = std::max(settings.evaluation.per_device_eval_batch_size,
                                        generation.batch_size)};
  // A shared engine stays alive until all ranks know of a failure.
  run_phase(job.group, "start", [&] {
    const VllmOptions vllm = vllm_options(job);
    std::optional<OffloadScope> offload_scope;
    // Before a rank starts an engine and waits for the ranks that share it.
    together(job.engine_ranks ? *job.engine_ranks : alone(), [&] {
      started.offload = make_offload(job, model, std::move(mover));
      offload_scope.emplace(started.offload.get());
    });
    started.engine = make_engine(settings.backend,
                                 {.model = model,
                                  .tokenizer = job.files.tokenizer,
                                  .pixels = sample_pixels(job),
                                  .vllm = vllm},
                                 generate);
    offload_scope->restore();
  });
  return started;
}

RolloutScorer make_scorer(const Job& job, const Dataset& data, RolloutScorer::Options options,
                          const Engine& engine) {
  options.stop_ids = engine.stop_ids;
  return {data, *job.files.format, std::move(options), &*job.files.prompts, &*job.pixels};
}

Asking::Asking(JobSource source, Use use, const Place& place)
    : job_(open_job(std::move(source), use, place)) {}

void Asking::start() {
  model_ = load_model(job_);
  if (job_.rolls_out()) engine_.emplace(start_engine(job_, model_, job_.settings().generation));
}

void Asking::answer_records(const std::function<void(const ScoredRollout&)>& visit) const {
  const Dataset& records = *job_.data.val;
  const RolloutScorer scorer = make_scorer(job_, records, scoring_options(job_), *engine_);
  score_batches(
      scorer, engine_->source(), all_batches(records.size(), engine_->batch_size),
      [&](int64_t num_done) {
        job_.terminal.progress({.phase = "answers", .done = num_done, .total = records.size()});
      },
      [&](size_t, const std::vector<ScoredRollout>& scored, const MetricsBag&) {
        for (const ScoredRollout& rollout : scored) visit(rollout);
      });
  job_.terminal.finish_progress();
}

}  // namespace rematch
