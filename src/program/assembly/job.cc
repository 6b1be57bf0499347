#include "program/assembly/job.h"

#include <utility>

#include "engine/ranks/device.h"
#include "engine/ranks/phase.h"
#include "engine/rollout/engine_factory.h"
#include "learn/augment/augmentation.h"
#include "model/checkpoint/model_dir.h"
#include "program/assembly/run_identity.h"
#include "program/assembly/run_inputs.h"
#include "program/assembly/vllm_setup.h"

namespace rematch {
namespace {

/// Checks the rollout backend, before data are read.
/// @param options  makes those of `vllm`
void check_backend(const Settings& settings, const std::function<VllmOptions()>& options) {
  check_backend_available(settings.backend, settings.backend == "vllm" ? options() : VllmOptions{});
}

at::Device open_device(const Settings& settings, const std::string& wish) {
  const at::Device device = choose_device(wish);
  dtype_on(device, settings.model.dtype);
  return device;
}

void print_warnings(const JobSource& source, Terminal& terminal) {
  if (!source.checkpoint.note.empty()) terminal.say(source.checkpoint.note);
  for (const Warning& warning : source.config.warnings)
    terminal.warn(warning.text + " (" + warning.where + ")");
}

Job open_here(JobSource source, Use use, const Place& place) {
  const Settings& settings = source.config.settings;
  Report report(place.terminal);
  std::unique_ptr<Group> engine_ranks;
  const bool rolls = rolls_out(use, settings);
  if (rolls) engine_ranks = split_engine_ranks(settings, place.group);
  const at::Device device = open_device(settings, place.device);
  use_device(device, rolls && settings.backend == "vllm");
  if (rolls) {
    check_backend(settings, [&] {
      return make_vllm_options(settings, device, place.group, engine_ranks.get());
    });
  }
  ModelFiles files = *open_model(settings, use, report);
  Data data = open_data(settings, &files, use, report);
  auto pixels = std::make_unique<PixelStore>(
      PixelStore::Options{.loader = settings.loader,
                          .batch_images = settings.batches.per_device_train_batch_size,
                          .patches = files.patches,
                          .as_levels = !device.is_cpu(),
                          .change = change_image});
  return {.source = std::move(source),
          .use = use,
          .terminal = place.terminal,
          .group = place.group,
          .engine_ranks = std::move(engine_ranks),
          .device = device,
          .files = std::move(files),
          .data = std::move(data),
          .pixels = std::move(pixels)};
}

}  // namespace

InputFiles Job::inputs() const {
  InputFiles inputs = run_inputs(source.config);
  if (source.checkpoint.is_adapter) add_model(inputs, source.checkpoint.path);
  if (data.val) {
    for (const Sample& sample : data.val->samples()) {
      for (const std::string& image : sample.image_paths) inputs.add(image);
    }
  }
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
  at::Device chosen = at::kCPU;
  report.attempt([&] { chosen = open_device(settings, device); });
  if (rolls_out(use, settings)) {
    report.attempt([&] {
      check_backend(settings, [&] {
        VllmOptions options = make_vllm_options(settings, chosen, alone());
        options.world_size = options.ranks_on_host = num_ranks;
        return options;
      });
    });
  }
  CheckedJob checked{.files = open_model(settings, use, report)};
  checked.data = open_data(settings, checked.files ? &*checked.files : nullptr, use, report);
  return checked;
}

}  // namespace rematch
