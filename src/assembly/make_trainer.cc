#include "assembly/make_trainer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "assembly/loss_keys.h"
#include "checkpoint/image_area.h"
#include "checkpoint/peft.h"
#include "model/adapter.h"
#include "model/finite_weights.h"
#include "model/save.h"
#include "mstep/make_gradient_sum.h"
#include "mstep/optim/groups.h"
#include "text/stored_prompt.h"

namespace rematch {
namespace {

bool has_validation(const Settings& settings) {
  return settings.data.val_jsonl && settings.cadence.eval_when != When::kNever;
}

/// Draws the samples of an epoch by their weights; empty when each is used once.
DrawEpoch make_draw(const Dataset& data, uint64_t seed) {
  const auto is_whole = [](const MixturePart& part) { return part.weight == 1; };
  if (std::all_of(data.parts().begin(), data.parts().end(), is_whole)) return {};
  return [parts = data.parts(), seed](int64_t epoch) { return draw_mixture(parts, seed, epoch); };
}

std::unique_ptr<WindowStream> make_stream(const Session& session, const Group& group) {
  const Settings& settings = session.settings;
  return std::make_unique<WindowStream>(
      WindowOptions{.num_samples = session.train_data->epoch_size(),
                    .batches = settings.batches,
                    .seed = settings.seed,
                    .world_size = group.size(),
                    .rank = group.rank(),
                    .cut = session.stream_packing ? session.stream_packing->cut() : CutEpoch(),
                    .draw = make_draw(*session.train_data, settings.seed)});
}

std::vector<NamedParameter> trained_parameters(const Model& model) {
  return model.adapter() ? model.adapter()->parameters() : model.parameters();
}

std::unique_ptr<MStep> make_mstep(const Session& session, FeatureCache* features,
                                  int64_t total_steps, Group& group) {
  const OptimSettings& optim = session.settings.optim;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : trained_parameters(*session.model))
    parameters.emplace_back(parameter.name, parameter.tensor);
  // An adapter has no tensors in frozen parts.
  const FreezeSettings freeze =
      session.model->adapter() ? FreezeSettings{} : session.settings.tuner.freeze;
  const GradientSumOptions over_ranks{.exact_ranks = optim.exact_ranks,
                                      .zero_stage = optim.zero_stage,
                                      .bucket_bytes = session.settings.ddp_bucket_cap_mb << 20};
  std::vector<ParameterGroup> groups =
      make_groups(parameters, session.model->description().part_of, optim, freeze);
  return std::make_unique<MStep>(
      session.row_model(features), make_gradient_sum(std::move(groups), group, over_ranks),
      optim.adam, Schedule(session.settings.schedule, optim.learning_rate, total_steps),
      MStep::Options{.loss = loss_options(session.settings, session.format->coord_token_ids()),
                     .normalization = session.settings.loss_normalization,
                     .max_grad_norm = optim.max_grad_norm,
                     .learning_rate = optim.learning_rate});
}

Packer make_packer(const Session& session) {
  PackSettings pack = session.settings.pack;
  if (!pack.enabled) return Packer({});
  if (!session.settings.is_stage_2()) pack.scope = PackScope::kMicroBatch;
  const auto warn = [&terminal = session.terminal](const std::string& text) {
    terminal.warn(text);
  };
  return Packer({.pack = pack, .packing_length = session.max_length(), .warn = warn});
}

BadSamples make_bad_samples(const Session& session, Group& group) {
  const Settings& settings = session.settings;
  return BadSamples(*session.train_data, *session.pixels, session.terminal, group,
                    {.skips = settings.data.on_bad_sample == OnBadSample::kSkip,
                     .run_dir = settings.output.run_dir,
                     .max_length = settings.is_stage_2() ? session.max_length() : 0,
                     .patches = session.patches,
                     .augment = settings.augment,
                     .seed = settings.seed});
}

RolloutParts make_rollout_parts(const Session& session, const Rollouts& rollouts,
                                Observers& observers) {
  const Settings& settings = session.settings;
  // With `skip`, BadSamples checks the lengths.
  const bool skips = settings.data.on_bad_sample == OnBadSample::kSkip;
  return {.scorer = *rollouts.train_scorer,
          .source = rollouts.source(),
          .target = {.format = *session.format,
                     .target = settings.target,
                     .max_length = skips ? 0 : session.max_length()},
          .share = settings.target.rollout_share,
          .on_rollouts = [&observers](int64_t step, const std::vector<ScoredRollout>& scored) {
            observers.show(step, scored);
          }};
}

/// The model files of a checkpoint: the model, or the adapter trained on it.
void save_weights(const Session& session, const std::string& directory) {
  check_finite_weights(trained_parameters(*session.model));
  if (session.model->adapter()) {
    write_peft_adapter(directory, session.model->adapter()->files());
  } else {
    save_hf_model(session.settings.model.directory, *session.model, directory);
  }
  const ImageSettings& images = session.settings.images;
  if (images.min_pixels || images.max_pixels)
    write_image_area(session.settings.model.directory, directory,
                     {session.patches.min_pixels, session.patches.max_pixels});
  write_stored_prompt(directory, {.texts = {.system_prompt = session.prompts->system_prompt(),
                                            .user_prompt = session.prompts->user_prompt()},
                                  .max_new_tokens = session.settings.generation.max_new_tokens,
                                  .answer_format = session.format_name,
                                  .image_backend = session.patches.backend});
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

bool needs_rollouts(const Settings& settings) {
  return settings.is_stage_2() || (has_validation(settings) && settings.rollouts);
}

SessionNeeds training_needs(const Settings& settings, Group* engine_ranks,
                            std::string weights_dir) {
  const bool has_val = has_validation(settings);
  return {.train_data = true,
          .val_data = has_val,
          .val_truth = has_val && !settings.is_stage_2(),
          .rollouts = needs_rollouts(settings),
          .engine_ranks = engine_ranks,
          .weights_dir = std::move(weights_dir)};
}

Trainer make_trainer(const Session& session, Observers& observers, Rollouts& rollouts, Group& group,
                     Fingerprint fingerprint) {
  const Settings& settings = session.settings;
  std::unique_ptr<WindowStream> stream = make_stream(session, group);
  RolloutBuffer buffer(settings.rollout_buffer,
                       settings.is_stage_2() ? settings.target.rollout_share : 1);
  const auto epoch_steps = [windows = stream.get(), buffer](int64_t epoch) {
    return buffer.epoch_steps(windows->windows_in_epoch(epoch), windows->ends_partial(epoch));
  };
  Cadence cadence(settings.cadence, epoch_steps);
  // Rows recur only when windows are reused.
  std::unique_ptr<FeatureCache> features;
  if (settings.rollout_buffer.steps_per_window() > 1) features = std::make_unique<FeatureCache>();
  std::unique_ptr<MStep> mstep = make_mstep(session, features.get(), cadence.total_steps(), group);

  group.barrier();  // no rank starts a shared engine after another one failed
  if (needs_rollouts(settings))
    rollouts =
        make_rollouts(session, [steps = mstep.get()] { return steps->optimizer().tensors(); });
  std::optional<RolloutParts> parts;
  if (settings.is_stage_2()) parts.emplace(make_rollout_parts(session, rollouts, observers));
  const bool harm_counts = settings.evaluation.stop_on_harm;
  const TrainerState state = initial_state(settings, cadence.total_steps());
  return Trainer(
      {.group = group,
       .log = observers.log(),
       .stream = std::move(stream),
       .bad_samples = make_bad_samples(session, group),
       .rollouts = std::move(parts),
       .truth = session.training_truth(session.stream_packing ? session.max_length() : 0),
       .packer = make_packer(session),
       .buffer = std::move(buffer),
       .features = std::move(features),
       .mstep = std::move(mstep),
       .cadence = std::move(cadence),
       .evaluation = has_validation(settings)
                         ? make_evaluation(session, rollouts, !settings.is_stage_2(), {}, group)
                         : nullptr,
       .checkpoints = Checkpoints(
           {.run_dir = settings.output.run_dir,
            .save_total_limit = settings.checkpoints.save_total_limit,
            .save_only_model = settings.checkpoints.save_only_model,
            .group = &group,
            .warn = [&session](const std::string& text) { session.terminal.warn(text); }},
           [&session](const std::string& path) { save_weights(session, path); }),
       .fingerprint = std::move(fingerprint),
       .state = state,
       .save_on_best = settings.cadence.save_when == When::kBest || harm_counts,
       .evaluate_first = has_validation(settings) && settings.evaluation.eval_on_start,
       .stop_on_harm = harm_counts});
}

}  // namespace rematch
