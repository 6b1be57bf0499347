#include "program/assembly/make_trainer.h"

#include <algorithm>
#include <utility>

#include "learn/mstep/make_gradient_sum.h"
#include "learn/mstep/optim/groups.h"
#include "model/adapter.h"
#include "model/checkpoint/image_area.h"
#include "model/checkpoint/peft.h"
#include "model/finite_weights.h"
#include "model/save.h"
#include "model/text/stored_prompt.h"
#include "program/assembly/loss_keys.h"
#include "program/assembly/parts.h"

namespace rematch {
namespace {

/// Draws the samples of an epoch by their weights; empty when each is used once.
DrawEpoch make_draw(const Dataset& data, uint64_t seed) {
  const auto is_whole = [](const MixturePart& part) { return part.weight == 1; };
  if (std::ranges::all_of(data.parts(), is_whole)) return {};
  return [parts = data.parts(), seed](int64_t epoch) { return draw_mixture(parts, seed, epoch); };
}

std::unique_ptr<WindowStream> make_stream(const Training& training) {
  const Job& job = training.job;
  const Settings& settings = job.settings();
  return std::make_unique<WindowStream>(
      WindowOptions{.num_samples = job.data.train->epoch_size(),
                    .batches = settings.batches,
                    .seed = settings.seed,
                    .world_size = job.group.size(),
                    .rank = job.group.rank(),
                    .cut = training.packing ? training.packing->cut() : CutEpoch(),
                    .draw = make_draw(*job.data.train, settings.seed)});
}

std::vector<NamedParameter> trained_parameters(const Model& model) {
  return model.adapter() ? model.adapter()->parameters() : model.parameters();
}

Update make_update(const Training& training, int64_t total_steps) {
  const Job& job = training.job;
  const Settings& settings = job.settings();
  const Model& model = *training.model;
  const OptimSettings& optim = settings.optim;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : trained_parameters(model))
    parameters.emplace_back(parameter.name, parameter.tensor);
  // An adapter has no tensors in frozen parts.
  const FreezeSettings freeze = model.adapter() ? FreezeSettings{} : settings.tuner.freeze;
  const GradientSumOptions over_ranks{.exact_ranks = optim.exact_ranks,
                                      .zero_stage = optim.zero_stage,
                                      .bucket_bytes = settings.ddp_bucket_cap_mb << 20,
                                      .meet = meeting_of(model)};
  std::vector<ParameterGroup> groups =
      make_groups(parameters, model.description().part_of, optim, freeze);
  Update update;
  // Rows recur only when windows are reused.
  if (settings.rollout_buffer.steps_per_window() > 1)
    update.features = std::make_unique<FeatureCache>();
  update.mstep = std::make_unique<MStep>(
      make_row_model(job, training.model, update.features.get()),
      make_gradient_sum(std::move(groups), job.group, over_ranks), optim.adam,
      Schedule(settings.schedule, optim.learning_rate, total_steps),
      MStep::Options{.loss = loss_options(settings, job.files.format->coord_token_ids()),
                     .normalization = settings.loss_normalization,
                     .max_grad_norm = optim.max_grad_norm,
                     .learning_rate = optim.learning_rate});
  return update;
}

Packer make_packer(const Job& job) {
  PackSettings pack = job.settings().pack;
  if (!pack.enabled) return Packer({});
  if (!job.settings().is_stage_2()) pack.scope = PackScope::kMicroBatch;
  const auto warn = [&terminal = job.terminal](const std::string& text) { terminal.warn(text); };
  return Packer({.pack = pack, .packing_length = job.settings().max_length(), .warn = warn});
}

BadSamples make_bad_samples(const Job& job) {
  const Settings& settings = job.settings();
  return BadSamples(*job.data.train, *job.pixels, job.terminal, job.group,
                    {.skips = settings.data.on_bad_sample == OnBadSample::kSkip,
                     .run_dir = settings.output.run_dir,
                     .max_length = settings.is_stage_2() ? settings.max_length() : 0,
                     .patches = job.files.patches,
                     .augment = settings.augment,
                     .seed = settings.seed});
}

Source make_source(const Training& training) {
  const Job& job = training.job;
  const Settings& settings = job.settings();
  return {.stream = make_stream(training),
          .bad_samples = make_bad_samples(job),
          .truth = training_truth(job, training.packing ? settings.max_length() : 0),
          .packer = make_packer(job),
          .buffer = RolloutBuffer(settings.rollout_buffer,
                                  settings.is_stage_2() ? settings.target.rollout_share : 1)};
}

Cadence make_cadence(const Settings& settings, const Source& source) {
  return {settings.cadence, [windows = source.stream.get(), buffer = source.buffer](int64_t epoch) {
            return buffer.epoch_steps(windows->windows_in_epoch(epoch),
                                      windows->ends_partial(epoch));
          }};
}

RolloutParts make_rollout_parts(const Job& job, const Engine& engine, Observers& observers) {
  const Settings& settings = job.settings();
  // With `skip`, BadSamples checks the lengths.
  const bool skips = settings.data.on_bad_sample == OnBadSample::kSkip;
  return {.scorer = make_scorer(job, *job.data.train, training_options(job), engine),
          .source = engine.source(),
          .target = {.format = *job.files.format,
                     .target = settings.target,
                     .max_length = skips ? 0 : settings.max_length()},
          .share = settings.target.rollout_share,
          .on_rollouts = [&observers](int64_t step, const std::vector<ScoredRollout>& scored) {
            observers.show(step, scored);
          }};
}

/// Writes the model files of a checkpoint: the model, or the adapter trained on it.
void save_weights(const Job& job, const Model& model, const std::string& directory) {
  const std::string& base = job.settings().model.directory;
  check_finite_weights(trained_parameters(model));
  if (model.adapter()) {
    write_peft_adapter(directory, model.adapter()->files());
  } else {
    save_hf_model(base, model, directory);
  }
  const ModelFiles& files = job.files;
  const ImageSettings& images = job.settings().images;
  // Always for an adapter: its base may be another directory later.
  if (images.min_pixels || images.max_pixels || model.adapter())
    write_image_area(base, directory, {files.patches.min_pixels, files.patches.max_pixels});
  if (job.order != nullptr) write_order(directory, *job.order);
  write_stored_prompt(directory, {.texts = {.system_prompt = files.prompts->system_prompt(),
                                            .user_prompt = files.prompts->user_prompt()},
                                  .max_new_tokens = job.settings().generation.max_new_tokens,
                                  .answer_format = files.format_name,
                                  .image_backend = files.patches.backend,
                                  .template_variables = files.prompts->template_variables()});
}

Checkpoints make_checkpoints(const Training& training) {
  const Job& job = training.job;
  const Settings& settings = job.settings();
  return Checkpoints(
      {.run_dir = settings.output.run_dir,
       .save_total_limit = settings.checkpoints.save_total_limit,
       .save_only_model = settings.checkpoints.save_only_model,
       .group = &job.group,
       .warn = [&job](const std::string& text) { job.terminal.warn(text); }},
      [&job, model = training.model](const std::string& path) { save_weights(job, *model, path); });
}

TrainerState initial_state(const Settings& settings, int64_t total_steps) {
  const CadenceSettings& cadence = settings.cadence;
  TrainerState state;
  state.max_steps = total_steps;
  state.num_train_epochs = cadence.num_train_epochs;
  state.logging_steps = cadence.logging_steps;
  state.eval_steps = cadence.eval_steps;
  state.save_steps = cadence.save_steps;
  state.train_batch_size = settings.batches.per_device_train_batch_size;
  return state;
}

}  // namespace

Trainer make_trainer(const Training& training, const std::optional<Engine>& engine,
                     Observers& observers, Fingerprint fingerprint) {
  const Job& job = training.job;
  const Settings& settings = job.settings();
  Source source = make_source(training);
  Cadence cadence = make_cadence(settings, source);
  Update update = make_update(training, cadence.total_steps());
  if (engine && engine->offload)
    engine->offload->set_optimizer(
        [mstep = update.mstep.get()] { return mstep->optimizer().tensors(); });
  std::optional<RolloutParts> rollouts;
  if (settings.is_stage_2()) rollouts.emplace(make_rollout_parts(job, *engine, observers));
  const TrainerState state = initial_state(settings, cadence.total_steps());
  return {job.group, std::move(source), std::move(rollouts), std::move(update),
          Record{.log = observers.log(),
                 .cadence = std::move(cadence),
                 .evaluation = settings.evaluates() ? make_evaluation(job, training.model, engine,
                                                                      /*extra_gates=*/{0.5})
                                                    : nullptr,
                 .checkpoints = make_checkpoints(training),
                 .fingerprint = std::move(fingerprint),
                 .state = state}};
}

}  // namespace rematch
