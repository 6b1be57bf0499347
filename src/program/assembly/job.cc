#include "program/assembly/job.h"

#include <utility>

#include "base/file.h"
#include "engine/ranks/device.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/engine_factory.h"
#include "learn/augment/augmentation.h"
#include "learn/data/ordering.h"
#include "model/checkpoint/model_dir.h"
#include "program/assembly/run_identity.h"
#include "program/assembly/vllm_setup.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

/// @throws UserError (configuration) if the model would have to answer without whole weights
void check_order_is_learned(Use use, const Settings& settings) {
  if (use != Use::kTrain || settings.optim.zero_stage != 3 || settings.backend == "vllm" ||
      !needs_backend(use, settings))
    return;
  throw config_error({.error = "ZeRO stage 3 cannot learn the model's own order of objects",
                      .where = "custom.object_ordering",
                      .what = "its backend answers with whole weights",
                      .fix = "set `rollout_backend: vllm`, `custom.object_ordering: sorted` or "
                             "`training.zero_stage: 2`, or start from a run with `own`"});
}

/// Checks device, backend, model files and data.
/// @param options  those of `vllm` on a device
CheckedJob check_parts(const Settings& settings, Use use, const std::string& wish,
                       const std::function<VllmOptions(const at::Device&)>& options,
                       Report& report) {
  CheckedJob checked;
  report.attempt([&] {
    checked.device = choose_device(wish);
    dtype_on(checked.device, settings.model.dtype);
  });
  bool answers = false;
  report.attempt([&] {
    answers = needs_backend(use, settings);
    check_order_is_learned(use, settings);
  });
  const bool with_vllm = answers && settings.backend == "vllm";
  use_device(checked.device, with_vllm);
  if (answers) {
    report.attempt([&] {
      check_backend_available(settings.backend,
                              with_vllm ? options(checked.device) : VllmOptions{});
    });
  }
  checked.files = open_model(settings, use, report);
  checked.data = open_data(settings, checked.files ? &*checked.files : nullptr, use, report);
  return checked;
}

void print_warnings(const JobSource& source, Terminal& terminal) {
  if (!source.checkpoint.note.empty()) terminal.say(source.checkpoint.note);
  for (const Warning& warning : source.config.warnings) terminal.warn(warning.line());
}

Job open_here(JobSource source, Use use, const Place& place) {
  const Settings& settings = source.config.settings;
  Report report(place.terminal);
  check_order_is_learned(use, settings);
  std::unique_ptr<Group> engine_ranks;
  if (needs_backend(use, settings)) engine_ranks = split_engine_ranks(settings, place.group);
  CheckedJob checked = check_parts(
      settings, use, place.device,
      [&](const at::Device& device) {
        return make_vllm_options(settings, device, place.group, engine_ranks.get());
      },
      report);
  std::shared_ptr<const OrderScore> order =
      stored_order(settings.data, source.checkpoint.path.empty() ? settings.model.directory
                                                                 : source.checkpoint.path);
  auto pixels = std::make_unique<PixelStore>(
      PixelStore::Options{.loader = settings.loader,
                          .batch_images = settings.batches.per_device_train_batch_size,
                          .patches = checked.files->patches,
                          .as_levels = !checked.device.is_cpu(),
                          .change = change_image});
  return {.source = std::move(source),
          .use = use,
          .terminal = place.terminal,
          .group = place.group,
          .engine_ranks = std::move(engine_ranks),
          .device = checked.device,
          .files = *std::move(checked.files),
          .data = std::move(checked.data),
          .pixels = std::move(pixels),
          .order = std::move(order)};
}

}  // namespace

InputFiles run_inputs(const ConfigResult& config) {
  InputFiles inputs;
  for (const std::string& file : config.files) inputs.add(file);
  for (const EffectiveValue& value : config.effective) {
    if (is_file(value.value)) inputs.add(value.value);
  }
  for (const TrainFile& file : config.settings.data.train_files) inputs.add(file.path);
  if (config.settings.data.val_jsonl) inputs.add(*config.settings.data.val_jsonl);
  add_model(inputs, config.settings.model.directory);
  return inputs;
}

InputFiles Job::inputs() const {
  InputFiles inputs = run_inputs(source.config);
  if (source.checkpoint.is_adapter) add_model(inputs, source.checkpoint.path);
  if (data.val) add_images(inputs, data.val->samples());
  return inputs;
}

Job open_job(JobSource source, Use use, const Place& place) {
  std::optional<Job> job;
  run_phase(place.group, "start", [&] {
    print_warnings(source, place.terminal);
    meet_with_configuration(source.config, place.group);
    job.emplace(open_here(std::move(source), use, place));
  });
  return *std::move(job);
}

CheckedJob check_job(const Settings& settings, Use use, const std::string& device, int num_ranks,
                     Report& report) {
  return check_parts(
      settings, use, device,
      [&](const at::Device& chosen) {
        VllmOptions options = make_vllm_options(settings, chosen, alone());
        options.world_size = options.ranks_on_host = num_ranks;
        return options;
      },
      report);
}

}  // namespace rematch
