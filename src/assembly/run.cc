#include "assembly/run.h"

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "assembly/carry_optimizer.h"
#include "assembly/loss_keys.h"
#include "assembly/rollouts.h"
#include "assembly/session.h"
#include "assembly/skipping.h"
#include "assembly/start_lines.h"
#include "assembly/vllm_setup.h"
#include "base/file.h"
#include "checkpoint/peft.h"
#include "monitor/monitor_dump.h"
#include "observe/wandb_follower.h"
#include "ranks/agreement.h"
#include "ranks/group.h"
#include "ranks/meeting.h"
#include "estep/turn_source.h"
#include "model/adapter.h"
#include "model/finite_weights.h"
#include "model/save.h"
#include "mstep/optim/groups.h"
#include "resume/abandoned.h"
#include "resume/resume.h"
#include "resume/run_lock.h"
#include "text/stored_prompt.h"
#include "train/loop.h"
#include "train/restore.h"

namespace rematch {
namespace {

constexpr int64_t kNoStep = -1;  // before the evaluation of step 0

WindowStream window_stream(const Session& session, const Group& group) {
  const Settings& settings = session.settings;
  return WindowStream({.num_samples = session.train_data->size(),
                       .batches = settings.batches,
                       .seed = settings.seed,
                       .world_size = group.size(),
                       .rank = group.rank(),
                       .cut = session.stream_packing ? session.stream_packing->cut() : CutEpoch()});
}

MStep make_mstep(const Session& session, FeatureCache* kept, int64_t total_steps, Group& group) {
  const OptimSettings& optim = session.settings.optim;
  const Adapter* adapter = session.model->adapter().get();
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const NamedParameter& parameter :
       adapter ? adapter->parameters() : session.model->parameters()) {
    parameters.emplace_back(parameter.name, parameter.tensor);
  }
  // An adapter has no tensors of frozen parts.
  const FreezeSettings freeze =
      adapter == nullptr ? session.settings.tuner.freeze : FreezeSettings{};
  return MStep(session.row_model(kept),
               make_groups(parameters, session.model->description().part_of, optim, freeze),
               optim.adam, Schedule(session.settings.schedule, optim.learning_rate, total_steps),
               {.loss = loss_options(session.settings, session.coords.ids()),
                .normalization = session.settings.loss_normalization,
                .max_grad_norm = optim.max_grad_norm,
                .learning_rate = optim.learning_rate,
                .group = &group,
                .zero_stage = optim.zero_stage,
                .bucket_bytes = session.settings.ddp_bucket_cap_mb << 20});
}

/// @param on_examined  sees the rollouts of every window; may be empty
std::unique_ptr<SegmentSource> make_source(
    const Session& session, const Rollouts& rollouts,
    std::function<void(const std::vector<Examined>&)> on_examined) {
  const Settings& settings = session.settings;
  std::unique_ptr<SegmentSource> truth =
      session.teacher(*session.train_data, session.stream_packing ? session.max_length() : 0,
                      {.sigma_bins = settings.data.coord_input_noise, .seed = settings.seed});
  if (!settings.is_stage_2()) return truth;
  // then LongSegments looks at the lengths
  const bool skips = settings.data.on_bad_sample == OnBadSample::kSkip;
  auto estep =
      std::make_unique<EStep>(*rollouts.train_examiner, *rollouts.engine, session.vocab,
                              EStep::Options{.target = settings.target,
                                             .global_max_length = skips ? 0 : session.max_length(),
                                             .offload = rollouts.offload.get(),
                                             .on_examined = std::move(on_examined)});
  if (settings.target.rollout_share >= 1) return estep;
  return std::make_unique<SharedSource>(std::move(estep), std::move(truth),
                                        settings.target.rollout_share);
}

Packer make_packer(const Session& session) {
  PackSettings pack = session.settings.pack;
  if (!pack.enabled) return Packer({});
  if (!session.settings.is_stage_2()) pack.scope = PackScope::kMicroBatch;
  return Packer(
      {.pack = pack,
       .packing_length = session.max_length(),
       .warn = [&terminal = session.terminal](const std::string& text) { terminal.warn(text); }});
}

/// Where rank 0 logs; the others log nowhere.
struct Sinks {
  std::vector<std::unique_ptr<MetricSink>> all;
  TensorboardSink* tensorboard = nullptr;  ///< one of them, if wanted
};

/// @param first_step  later lines were written by a killed run after its last checkpoint, and are
/// dropped; none keeps all
Sinks make_sinks(const ConfigResult& result, std::optional<int64_t> first_step) {
  const OutputSettings& output = result.settings.output;
  const std::string path = output.run_dir + "/logging.jsonl";
  if (first_step && std::filesystem::exists(path)) truncate_jsonl_after(path, *first_step);
  Sinks sinks;
  sinks.all.push_back(make_jsonl_sink(path));
  if (!output.wants_tensorboard()) return sinks;
  std::unique_ptr<TensorboardSink> tensorboard =
      make_tensorboard_sink(output.logging_dir, first_step);
  std::vector<std::pair<std::string, std::string>> values;
  for (const EffectiveValue& value : result.effective) values.emplace_back(value.key, value.value);
  tensorboard->settings(values);
  sinks.tensorboard = tensorboard.get();
  sinks.all.push_back(std::move(tensorboard));
  return sinks;
}

Fingerprint fingerprint_of(const ConfigResult& result, const Session& session, const Group& group) {
  const Settings& settings = result.settings;
  FingerprintInput input{
      .model_dir = settings.model.directory,
      .parameters = session.model->parameters(),
      .dataset_hash = session.train_data->content_hash(),
      .num_samples = session.train_data->size(),
      .num_long_dropped = session.num_long_dropped,
      .world_size = group.size(),
      .per_device_train_batch_size = settings.batches.per_device_train_batch_size,
      .gradient_accumulation_steps = settings.batches.gradient_accumulation_steps,
      .drop_last = settings.batches.drop_last,
      .seed = settings.seed,
      .trainer_variant = name_of(settings.variant),
      .packing = settings.pack.enabled,
      .pack_scope = name_of(settings.pack.scope),
      .packing_length = session.max_length(),
      .stream_rows = session.stream_packing ? session.stream_packing->fingerprint() : "",
      .m_steps = settings.rollout_buffer.steps_per_window(),
      .freeze_llm = settings.tuner.freeze.llm,
      .freeze_vit = settings.tuner.freeze.vit,
      .freeze_aligner = settings.tuner.freeze.aligner};
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
  for (const EffectiveValue& value : result.effective)
    input.settings.emplace_back(value.key, value.value);
  return make_fingerprint(input);
}

/// The model files of a checkpoint: the model, or the adapter trained on it.
void save_weights(const Session& session, const std::string& directory) {
  check_finite_weights(session.model->adapter() ? session.model->adapter()->parameters()
                                                : session.model->parameters());
  if (session.model->adapter()) {
    write_peft_adapter(directory, session.model->adapter()->files());
  } else {
    save_hf_model(session.settings.model.directory, *session.model, directory);
  }
  write_stored_prompt(directory, *session.prompts, session.settings.generation.max_new_tokens);
}

}  // namespace

void meet_with_configuration(const ConfigResult& result, Group& group) {
  std::vector<std::pair<std::string, std::string>> identity;
  for (const EffectiveValue& value : result.effective) {
    if (affects_training(value.key)) identity.emplace_back(value.key, value.value);
  }
  meet(group, identity);
}

namespace {

/// The checkpoint that this run resumes from, if any; prepares the run directory for writing.
std::optional<std::string> choose_start(const Settings& settings, Terminal& terminal) {
  for (const std::string& name : remove_leftovers(settings.output.run_dir))
    terminal.say(fmt::format("removed {}, left by a killed run", name));
  if (!settings.checkpoints.resume_from_checkpoint) {
    if (std::filesystem::exists(settings.output.run_dir + "/logging.jsonl")) {
      terminal.warn(
          fmt::format("{} holds an earlier run: its logging.jsonl is continued and checkpoints of "
                      "the same step are replaced; "
                      "training.resume_from_checkpoint: latest resumes it, training.run_name or "
                      "training.add_version: true separates runs",
                      settings.output.run_dir));
    }
    return std::nullopt;
  }
  const ResumeChoice choice =
      resolve_resume(*settings.checkpoints.resume_from_checkpoint, settings.output.run_dir);
  for (const std::string& text : choice.warnings) terminal.warn(text);
  terminal.say(choice.checkpoint
                   ? fmt::format("resuming from {}", *choice.checkpoint)
                   : fmt::format("{} has no checkpoint to resume from: starting a new run",
                                 settings.output.run_dir));
  return choice.checkpoint;
}

/// The packing of all ranks together.
std::string packing_text(const Packer& packer, Group& group) {
  const PackingSummary& own = packer.summary();
  std::array<int64_t, 6> counts{own.num_rows,        own.num_segments,
                                own.num_tokens,      own.padded_tokens,
                                own.num_underfilled, std::ssize(packer.waiting())};
  group.all_reduce(counts);
  const PackingSummary total{.num_rows = counts[0],
                             .num_segments = counts[1],
                             .num_tokens = counts[2],
                             .padded_tokens = counts[3],
                             .num_underfilled = counts[4]};
  return packer.summary_text(total, static_cast<size_t>(counts[5]));
}

/// Where rollouts of other engines, batches or machines may differ; empty when nowhere.
std::string near_ties_text(const RolloutEngine& engine, Group& group) {
  int64_t count = engine.num_near_ties();
  group.all_reduce(std::span<int64_t>(&count, 1));
  if (count == 0) return {};
  return fmt::format(
      "rollouts: {} greedy choices between logits that nearly tie; another backend or machine may "
      "choose otherwise",
      count);
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

void agree_on_output(OutputSettings& output, Group& group) {
  output.run_dir = group.broadcast(output.run_dir);
  output.logging_dir = group.broadcast(output.logging_dir);
}

void run_training(const ConfigResult& result, const std::string& device, Terminal& terminal,
                  Group& group) {
  const Settings& settings = result.settings;
  const bool is_first = group.rank() == 0;
  meet_with_configuration(result, group);
  std::optional<std::string> checkpoint;
  std::unique_ptr<const RunLock> lock;
  together(group, [&] {
    if (!is_first) return;
    // The run directory first: an unwritable disk must be found before the model is loaded.
    make_directories(settings.output.run_dir);
    lock = std::make_unique<const RunLock>(settings.output.run_dir);
    checkpoint = choose_start(settings, terminal);
    write_file_atomic(settings.output.run_dir + "/args.json",
                      python_json(effective_json(result), 2) + "\n");
    write_file_atomic(settings.output.run_dir + "/effective_config.txt", effective_text(result));
  });
  if (const std::string path = group.broadcast(checkpoint.value_or("")); !path.empty())
    checkpoint = path;
  const std::optional<std::string> averages =
      checkpoint ? std::nullopt : settings.checkpoints.resume_optimizer_from;
  together(group, [&] {
    if (averages) check_carried_optimizer(*averages);
  });

  const bool has_val = settings.data.val_jsonl && settings.cadence.eval_when != When::kNever;
  const bool needs_rollouts = settings.is_stage_2() || (has_val && settings.rollouts);
  const std::unique_ptr<Group> engine_ranks =
      needs_rollouts ? ranks_of_engine(settings, group) : nullptr;
  const SessionNeeds needs{.train_data = true,
                           .val_data = has_val,
                           .val_truth = has_val && !settings.is_stage_2(),
                           .rollouts = needs_rollouts,
                           .engine_ranks = engine_ranks.get(),
                           .weights_dir = checkpoint.value_or("")};
  std::optional<Session> prepared;
  together(group, [&] { prepared.emplace(settings, device, needs, group, terminal); });
  const Session& session = *prepared;

  WindowStream windows = window_stream(session, group);
  RolloutBuffer buffer(settings.rollout_buffer,
                       settings.is_stage_2() ? settings.target.rollout_share : 1);
  const Cadence cadence(settings.cadence, [&](int64_t epoch) {
    return buffer.steps_of_epoch(windows.windows_in_epoch(epoch), windows.ends_partial(epoch));
  });
  FeatureCache features;
  // Only a window that is reused has rows that recur.
  FeatureCache* const kept = settings.rollout_buffer.steps_per_window() > 1 ? &features : nullptr;
  WindowCleanup cleanup(kept);
  MStep mstep = make_mstep(session, kept, cadence.total_steps(), group);
  Rollouts rollouts;
  together(group, [&] {
    if (averages)
      carry_optimizer(*averages, session.model->description().text.vocab_size, mstep.optimizer(),
                      terminal);
  });
  together(group, [&] {
    if (needs.rollouts)
      rollouts = make_rollouts(session, [&mstep] { return mstep.optimizer().tensors(); });
  });

  const Fingerprint fingerprint = fingerprint_of(result, session, group);
  meet(group, fingerprint.fixed);
  std::optional<LoadedCheckpoint> resume;
  together(group, [&] {
    if (!checkpoint) return;
    resume = read_checkpoint(*checkpoint, session.model->description().text.vocab_size,
                             {group.rank(), group.size()});
    for (const std::string& text :
         compare_fingerprints(resume->run.fingerprint, fingerprint, *checkpoint))
      terminal.warn(text);
  });
  Skipping skipping(session, group);
  if (resume) skipping.drop_from(resume->run);
  together(group, [&] {
    if (!is_first || !resume || resume->trainer.global_step >= cadence.total_steps()) return;
    if (const auto aside =
            move_later_checkpoints_aside(settings.output.run_dir, resume->trainer.global_step))
      terminal.warn(fmt::format(
          "moved the checkpoints after step {} to {}; remove it when you do not need them",
          resume->trainer.global_step, *aside));
  });
  TrainerState state = initial_state(settings, cadence.total_steps());
  // `latest` without a checkpoint starts the same run again: what it logged before its first
  // checkpoint is dropped as well.
  const bool is_same_run = settings.checkpoints.resume_from_checkpoint.has_value();
  Sinks sinks;
  together(group, [&] {
    if (is_first)
      sinks = make_sinks(result, is_same_run
                                     ? std::optional(resume ? resume->trainer.global_step : kNoStep)
                                     : std::nullopt);
  });
  RunLog log(terminal, std::move(sinks.all),
             {.memory_bytes = [&session] { return memory_in_use(session.device); },
              .step_tokens = [&buffer] { return buffer.last_num_tokens(); },
              .num_ranks = group.size()});
  std::unique_ptr<const WandbFollower> wandb;
  together(group, [&] {
    if (!is_first || !settings.output.wants_wandb()) return;
    if (const std::optional<std::string> text = missing_wandb())
      terminal.warn(*text);
    else
      wandb = std::make_unique<const WandbFollower>(settings.output.run_dir,
                                                    settings.output.run_name.value_or("rematch"));
  });
  std::unique_ptr<MonitorDump> monitor;
  std::function<void(const std::vector<Examined>&)> on_examined;
  if (settings.monitor.enabled && settings.is_stage_2() && is_first) {
    monitor = std::make_unique<MonitorDump>(
        MonitorDump::Options{.settings = settings.monitor,
                             .match = settings.match,
                             .target = settings.target,
                             .run_dir = settings.output.run_dir,
                             .logging_steps = settings.cadence.logging_steps,
                             .user_prompt = session.prompts->user_prompt(),
                             .tensorboard = sinks.tensorboard},
        session.vocab, terminal);
    on_examined = [&](const std::vector<Examined>& examined) {
      monitor->dump(state.global_step + 1, examined);
    };
  }
  std::unique_ptr<SegmentSource> source =
      skipping.source(make_source(session, rollouts, on_examined));
  if (rollouts.engine) source = std::make_unique<TurnSource>(std::move(source), *rollouts.engine);
  const std::unique_ptr<const LongSegments> long_segments = skipping.long_segments();
  Packer packer = make_packer(session);
  const std::unique_ptr<Evaluation> evaluation =
      has_val ? make_evaluation(session, rollouts, !settings.is_stage_2(), {}, group) : nullptr;
  Checkpoints checkpoints(
      {.run_dir = settings.output.run_dir,
       .save_total_limit = settings.checkpoints.save_total_limit,
       .save_only_model = settings.checkpoints.save_only_model,
       .group = &group},
      [&session](const std::string& directory) { save_weights(session, directory); });
  for (const std::string& line :
       start_lines(session, group, resume ? resume->trainer.global_step : 0, cadence.total_steps()))
    terminal.say(line);

  const auto start = std::chrono::steady_clock::now();
  TrainParts parts{
      .windows = windows,
      .source = *source,
      .packer = packer,
      .buffer = buffer,
      .mstep = mstep,
      .cleanup = cleanup,
      .cadence = cadence,
      .evaluation = evaluation.get(),
      .checkpoints = checkpoints,
      .fingerprint = fingerprint,
      .log = log,
      .state = state,
      .save_on_best = settings.cadence.save_when == When::kBest || settings.evaluation.stop_on_harm,
      .evaluate_first = evaluation != nullptr && settings.evaluation.eval_on_start,
      .stop_on_harm = settings.evaluation.stop_on_harm,
      .group = group,
      .long_segments = long_segments.get()};
  together(group, [&] {
    if (resume) restore(std::move(*resume), parts);
  });
  const int64_t first_step = state.global_step;
  if (checkpoint) {
    const char* end =
        first_step >= cadence.total_steps()
            ? ": nothing is left to do; training.max_steps or num_train_epochs sets the end"
            : "";
    terminal.say(
        fmt::format("resuming after step {} of {}{}", first_step, cadence.total_steps(), end));
  }
  train_loop(parts);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (evaluation) log.note_final_health(state, evaluation->num_samples());
  if (const std::string text = packing_text(packer, group); !text.empty()) terminal.say(text);
  const std::string dropped =
      session.stream_packing ? session.stream_packing->summary_text(windows.cursor().epoch) : "";
  if (!dropped.empty()) terminal.say(dropped);
  const std::string near_ties = rollouts.engine ? near_ties_text(*rollouts.engine, group) : "";
  if (!near_ties.empty()) terminal.say(near_ties);
  if (session.num_long_dropped > 0)
    terminal.say(fmt::format("{} samples longer than global_max_length were not trained on",
                             session.num_long_dropped));
  if (monitor) terminal.say(monitor->summary_text(seconds));
  if (wandb) {
    if (const std::optional<std::string> text = wandb->problem()) terminal.warn(*text);
  }
  log.note_done(state.global_step - first_step, seconds, settings.output.run_dir);
}

}  // namespace rematch
