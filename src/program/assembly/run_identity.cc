#include "program/assembly/run_identity.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/ranks/meeting.h"
#include "model/adapter.h"

namespace rematch {
namespace {

/// True for settings of one host: paths (their contents are compared) and settings that do not
/// affect other ranks. All other settings decide the collectives of a rank or its samples.
bool may_differ_between_ranks(const std::string& key) {
  static const std::set<std::string> kHostSettings = {"model.model",
                                                      "custom.train_jsonl",
                                                      "custom.val_jsonl",
                                                      "custom.extra.rollout_matching.label_match",
                                                      "data.dataloader_num_workers",
                                                      "data.dataloader_prefetch_factor",
                                                      "training.output_dir",
                                                      "training.logging_dir",
                                                      "training.run_name",
                                                      "training.add_version",
                                                      "training.report_to",
                                                      "training.resume_from_checkpoint"};
  return kHostSettings.contains(key);
}

}  // namespace

FingerprintInput fingerprint_input(const Settings& settings, const Data& data, int world_size) {
  return {.model_dir = settings.model.directory,
          .dataset_hash = data.train->content_hash(),
          .num_samples = data.train->size(),
          .num_long_dropped = data.num_long_dropped,
          .world_size = world_size,
          .batches = settings.batches,
          .seed = settings.seed,
          .trainer_variant = name_of(settings.variant),
          .pack = settings.pack,
          .packing_length = settings.max_length(),
          .m_steps = settings.rollout_buffer.steps_per_window(),
          .freeze = settings.tuner.freeze};
}

Fingerprint agreed_fingerprint(const Training& training) {
  const Job& job = training.job;
  const Model& model = *training.model;
  const Settings& settings = job.settings();
  FingerprintInput input = fingerprint_input(settings, job.data, job.group.size());
  if (settings.images.min_pixels || settings.images.max_pixels)
    input.image_area = {job.files.patches.min_pixels, job.files.patches.max_pixels};
  input.parameters = model.parameters();
  input.stream_rows = training.packing ? training.packing->fingerprint() : "";
  if (model.adapter()) {
    std::set<std::string> trained;
    for (const NamedParameter& parameter : model.adapter()->parameters()) {
      input.parameters.push_back(parameter);
      trained.insert(parameter.name);
    }
    for (const NamedParameter& parameter : model.parameters()) {
      if (trained.count(parameter.name) == 0) input.base_parameters.push_back(parameter);
    }
  }
  input.answer_format = job.files.format_name;
  for (const EffectiveValue& value : job.source.config.effective) {
    // Set above: null and the default are the same format.
    if (value.key != "custom.answer_format") input.settings.emplace_back(value.key, value.value);
  }
  Fingerprint fingerprint = make_fingerprint(input);
  require_equal(job.group, fingerprint.fixed);
  return fingerprint;
}

void meet_with_configuration(const ConfigResult& config, Group& group) {
  std::vector<std::pair<std::string, std::string>> identity;
  for (const EffectiveValue& value : config.effective) {
    if (!may_differ_between_ranks(value.key)) identity.emplace_back(value.key, value.value);
  }
  require_equal(group, identity);
}

}  // namespace rematch
