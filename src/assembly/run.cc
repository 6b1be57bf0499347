#include "assembly/run.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/file.h"
#include "checkpoint/hf_dir.h"
#include "checkpoint/peft.h"
#include "dist/group.h"
#include "model/adapter.h"
#include "model/save.h"
#include "mstep/optim/groups.h"
#include "train/loop.h"
#include "train/restore.h"
#include "resume/resume.h"
#include "assembly/session.h"

namespace rematch {
namespace {

When when_of(const std::string& strategy) {
  return strategy == "steps" ? When::kSteps : strategy == "epoch" ? When::kEpoch : strategy == "best" ? When::kBest : When::kNever;
}

CadenceOptions cadence_options(const CadenceConfig& config) {
  return {.max_steps = config.max_steps,
          .num_train_epochs = config.num_train_epochs,
          .logging_steps = config.logging_steps,
          .logging_first_step = config.logging_first_step,
          .eval_when = when_of(config.eval_strategy),
          .eval_steps = config.eval_steps,
          .save_when = when_of(config.save_strategy),
          .save_steps = config.save_steps,
          .save_delay_steps = config.save_delay_steps,
          .save_delay_epochs = config.save_delay_epochs,
          .save_last_epoch = config.save_last_epoch};
}

WindowStream window_stream(const Session& session, const Group& group) {
  const Config& config = session.config;
  return WindowStream({.num_samples = session.train_data->size(),
                       .per_device_train_batch_size = config.cadence.per_device_train_batch_size,
                       .gradient_accumulation_steps = config.cadence.gradient_accumulation_steps,
                       .seed = config.cadence.seed,
                       .world_size = group.size(),
                       .rank = group.rank(),
                       .drop_last = config.data.drop_last,
                       .cut = session.stream_packing ? session.stream_packing->cut() : CutEpoch()});
}

MStep make_mstep(const Session& session, int64_t total_steps, Group& group) {
  const OptimConfig& optim = session.config.optim;
  const ScheduleConfig& schedule = session.config.schedule;
  const TunerConfig& tuner = session.config.tuner;
  const Adapter* adapter = session.model->adapter().get();
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter : adapter ? adapter->parameters() : session.model->parameters()) {
    parameters.emplace_back(parameter.name, parameter.tensor);
  }
  // An adapter holds nothing of frozen groups to begin with.
  const bool whole = adapter == nullptr;
  std::vector<ParameterGroup> groups = make_groups(parameters, session.model->description().part_of,
                                                   {.learning_rate = optim.learning_rate,
                                                    .vit_lr = optim.vit_lr,
                                                    .aligner_lr = optim.aligner_lr,
                                                    .weight_decay = optim.weight_decay,
                                                    .freeze_llm = whole && tuner.freeze_llm,
                                                    .freeze_vit = whole && tuner.freeze_vit,
                                                    .freeze_aligner = whole && tuner.freeze_aligner});
  const Schedule lr_schedule({.type = schedule.type,
                              .num_warmup_steps = num_warmup_steps(schedule.warmup_steps, schedule.warmup_ratio, total_steps),
                              .num_training_steps = total_steps,
                              .learning_rate = optim.learning_rate,
                              .num_cycles = schedule.num_cycles,
                              .min_lr = schedule.min_lr,
                              .min_lr_rate = schedule.min_lr_rate,
                              .warmup_lr_rate = schedule.warmup_lr_rate});
  return MStep(session.row_model(), std::move(groups),
               {.beta1 = optim.adam_beta1, .beta2 = optim.adam_beta2, .epsilon = optim.adam_epsilon}, lr_schedule,
               {.loss = session.loss_options(),
                .normalization = session.config.loss.per_row ? LossNormalization::kRow : LossNormalization::kWindow,
                .max_grad_norm = optim.max_grad_norm,
                .learning_rate = optim.learning_rate,
                .group = &group});
}

std::unique_ptr<SegmentSource> make_source(const Session& session) {
  if (!session.config.is_stage_2()) return session.teacher(*session.train_data, session.stream_packing ? session.max_length() : 0);
  const MatchConfig& match = session.config.match;
  const TargetOptions target{.ot_cost = ot_cost_from(match.ot_cost), .ot_epsilon = match.ot_epsilon, .ot_iters = match.ot_iters};
  return std::make_unique<EStep>(
      *session.train_examiner, *session.engine, session.vocab,
      EStep::Options{.target = target, .global_max_length = session.max_length(), .offload = session.offload.get()});
}

Packer make_packer(const Session& session) {
  const PackConfig& pack = session.config.pack;
  if (!pack.enabled) return Packer({});
  const PackScope scope = !session.config.is_stage_2() ? PackScope::kMicroBatch
                          : pack.whole_window          ? PackScope::kWindow
                                                       : PackScope::kCarry;
  return Packer({.scope = scope,
                 .selector = packing_selector(pack.selector),
                 .packing_length = session.max_length(),
                 .packing_buffer = pack.buffer,
                 .min_fill_ratio = pack.min_fill_ratio,
                 .warn = [&terminal = session.terminal](const std::string& text) { terminal.warn(text); }});
}

/// @param first_step  lines behind it belong to what a killed run did after its last checkpoint, and go; none keeps all
std::vector<std::unique_ptr<MetricSink>> make_sinks(const OutputConfig& output, std::optional<int64_t> first_step) {
  const std::string path = output.run_dir + "/logging.jsonl";
  if (first_step && std::filesystem::exists(path)) truncate_jsonl_after(path, *first_step);
  std::vector<std::unique_ptr<MetricSink>> sinks;
  sinks.push_back(make_jsonl_sink(path));
  if (output.tensorboard) sinks.push_back(make_tensorboard_sink(output.logging_dir, first_step));
  return sinks;
}

Fingerprint fingerprint_of(const ConfigResult& result, const Session& session, const Group& group) {
  const Config& config = result.config;
  FingerprintInput input{.model_dir = config.model.directory,
                         .parameters = session.model->parameters(),
                         .dataset_hash = session.train_data->content_hash(),
                         .num_samples = session.train_data->size(),
                         .world_size = group.size(),
                         .per_device_train_batch_size = config.cadence.per_device_train_batch_size,
                         .gradient_accumulation_steps = config.cadence.gradient_accumulation_steps,
                         .drop_last = config.data.drop_last,
                         .seed = config.cadence.seed,
                         .trainer_variant = config.is_stage_2() ? "rollout_matching_sft" : "sft",
                         .packing = config.pack.enabled,
                         .pack_scope = config.pack.whole_window ? "window" : "micro",
                         .packing_length = session.max_length(),
                         .stream_rows = session.stream_packing ? session.stream_packing->fingerprint() : "",
                         .m_steps = config.pack.m_steps,
                         .freeze_llm = config.tuner.freeze_llm,
                         .freeze_vit = config.tuner.freeze_vit,
                         .freeze_aligner = config.tuner.freeze_aligner};
  if (session.model->adapter()) {
    std::set<std::string> trained;
    for (const NamedParameter& parameter : session.model->adapter()->parameters()) {
      input.parameters.push_back(parameter);
      trained.insert(parameter.name);
    }
    for (const NamedParameter& parameter : session.model->parameters()) {
      if (trained.count(parameter.name) == 0) input.base_parameters.push_back(parameter);
    }
  }
  for (const EffectiveValue& value : result.effective) input.settings.emplace_back(value.key, value.value);
  return make_fingerprint(input);
}

/// What a checkpoint is to a user: the model, or the adapter that was trained on it.
void save_weights(const Session& session, const std::string& directory) {
  if (session.model->adapter()) {
    write_peft_adapter(directory, session.model->adapter()->files());
  } else {
    save_hf_model(session.config.model.directory, *session.model, directory);
  }
}

/// The checkpoint that this run goes on from, if any; leaves the run directory ready to be written to.
std::optional<std::string> choose_start(const Config& config, Terminal& terminal) {
  // The run directory first: an unwritable disk should not be found out after the model was loaded.
  make_directories(config.output.run_dir);
  for (const std::string& name : remove_leftovers(config.output.run_dir))
    terminal.say(fmt::format("cleared {}, left behind by a run that was killed", name));
  if (!config.cadence.resume_from_checkpoint) {
    if (std::filesystem::exists(config.output.run_dir + "/logging.jsonl")) {
      terminal.warn(fmt::format(
          "{} holds an earlier run: its logging.jsonl is continued and checkpoints of the same step are replaced; "
          "training.resume_from_checkpoint: latest goes on from it, training.run_name or training.add_version: true keeps runs apart",
          config.output.run_dir));
    }
    return std::nullopt;
  }
  const ResumeChoice choice = resolve_resume(*config.cadence.resume_from_checkpoint, config.output.run_dir);
  for (const std::string& text : choice.warnings) terminal.warn(text);
  terminal.say(choice.checkpoint ? fmt::format("resuming from {}", *choice.checkpoint)
                                 : fmt::format("{} holds no checkpoint to resume from: starting anew", config.output.run_dir));
  return choice.checkpoint;
}

TrainerState initial_state(const CadenceConfig& cadence, int64_t total_steps) {
  TrainerState state;
  state.max_steps = total_steps;
  state.num_train_epochs = cadence.num_train_epochs;
  state.logging_steps = cadence.logging_steps;
  state.eval_steps = cadence.eval_steps;
  state.save_steps = cadence.save_steps;
  state.train_batch_size = cadence.per_device_train_batch_size;
  return state;
}

}  // namespace

void run_training(const ConfigResult& result, const std::string& device, Terminal& terminal) {
  const Config& config = result.config;
  Group& group = group_of(world_from_environment());
  const std::optional<std::string> checkpoint = choose_start(config, terminal);
  write_file_atomic(config.output.run_dir + "/args.json", python_json(effective_json(result), 2) + "\n");

  const bool has_val = config.data.val_jsonl && config.cadence.eval_strategy != "no";
  const bool rollouts = config.is_stage_2() || (has_val && config.rollout.configured);
  Session session(config, device, {.train_data = true, .val_data = has_val, .rollouts = rollouts, .weights_dir = checkpoint.value_or("")},
                  terminal);
  const Fingerprint fingerprint = fingerprint_of(result, session, group);
  std::optional<LoadedCheckpoint> resume;
  if (checkpoint) resume = read_checkpoint(*checkpoint, session.model->description().text.vocab_size);
  if (resume) {
    for (const std::string& text : compare_fingerprints(resume->run.fingerprint, fingerprint, *checkpoint)) terminal.warn(text);
  }
  terminal.say(fmt::format("{} training samples from {}", session.train_data->size(), session.train_data->path()));

  WindowStream windows = window_stream(session, group);
  RolloutBuffer buffer({.enabled = config.pack.rollout_buffer, .m_steps = config.pack.m_steps});
  const Cadence cadence(cadence_options(config.cadence),
                        [&](int64_t epoch) { return buffer.steps_of_epoch(windows.windows_in_epoch(epoch), windows.ends_partial(epoch)); });
  const std::unique_ptr<SegmentSource> source = make_source(session);
  Packer packer = make_packer(session);
  MStep mstep = make_mstep(session, cadence.total_steps(), group);
  if (session.offload) session.offload->set_optimizer([&mstep] { return mstep.optimizer().tensors(); });
  const std::unique_ptr<Evaluation> evaluation = has_val ? session.evaluation(!config.is_stage_2()) : nullptr;
  const TrainParts* at_work = nullptr;
  Checkpoints::Writer write_state = [&](const std::string& directory) {
    write_state_files(directory, state_files_of(capture(*at_work, fingerprint), mstep.optimizer().state()));
  };
  if (config.cadence.save_only_model) write_state = {};
  Checkpoints checkpoints(
      {.run_dir = config.output.run_dir, .save_total_limit = config.cadence.save_total_limit.value_or(0), .group = &group},
      [&](const std::string& directory) { save_weights(session, directory); }, write_state);
  // `latest` without a checkpoint is the same run begun again: what it logged before its first checkpoint goes as well.
  const bool is_same_run = config.cadence.resume_from_checkpoint.has_value();
  RunLog log(terminal, make_sinks(config.output, is_same_run ? std::optional(resume ? resume->trainer.global_step : 0) : std::nullopt));
  TrainerState state = initial_state(config.cadence, cadence.total_steps());
  terminal.say(fmt::format("{}: {} optimizer steps, logs and checkpoints in {}",
                           config.is_stage_2() ? "rollout-matching SFT" : "supervised fine-tuning", cadence.total_steps(),
                           config.output.run_dir));

  const auto start = std::chrono::steady_clock::now();
  TrainParts parts{.windows = windows,
                   .source = *source,
                   .packer = packer,
                   .buffer = buffer,
                   .mstep = mstep,
                   .cadence = cadence,
                   .evaluation = evaluation.get(),
                   .checkpoints = checkpoints,
                   .log = log,
                   .state = state,
                   .save_on_best = config.cadence.save_strategy == "best"};
  at_work = &parts;
  if (resume) restore(std::move(*resume), parts);
  const int64_t first_step = state.global_step;
  if (resume) terminal.say(fmt::format("going on after step {} of {}", first_step, cadence.total_steps()));
  train_loop(parts);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (const std::string text = packer.summary_text(); !text.empty()) terminal.say(text);
  const std::string dropped = session.stream_packing ? session.stream_packing->summary_text(windows.cursor().epoch) : "";
  if (!dropped.empty()) terminal.say(dropped);
  const int64_t num_steps = state.global_step - first_step;
  terminal.say(fmt::format("done: {} steps in {:.0f} s ({:.2f} s a step)", num_steps, seconds,
                           seconds / static_cast<double>(std::max<int64_t>(1, num_steps))));
}

}  // namespace rematch
