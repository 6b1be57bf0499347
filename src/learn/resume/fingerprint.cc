#include "learn/resume/fingerprint.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "learn/resume/checkpoint_list.h"
#include "model/checkpoint/peft.h"
#include "model/save.h"

namespace rematch {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Settings that do not affect training; with a trailing dot or underscore, a prefix of names.
constexpr const char* kHarmless[] = {"model.model",  // only the path; its content is fixed
                                     "custom.train_jsonl",
                                     "custom.train_sample_limit",
                                     "custom.val_",
                                     "data.dataloader_num_workers",
                                     "data.dataloader_prefetch_factor",
                                     "debug.",
                                     "training.output_dir",
                                     "training.run_name",
                                     "training.add_version",
                                     "training.gradient_checkpointing",  // the same bits
                                     "training.logging_",
                                     "training.report_to",
                                     "training.eval_",
                                     "training.save_",
                                     "training.metric_for_best_model",
                                     "training.greater_is_better",
                                     "training.resume_from_checkpoint",
                                     "training.stop_on_harm",
                                     "training.early_stopping_patience",
                                     "training.per_device_eval_batch_size",
                                     "training.effective_batch_size",
                                     "training.zero_stage",
                                     "training.ddp_",
                                     "custom.extra.rollout_matching.monitor_dump.",
                                     "custom.extra.rollout_matching.label_match",
                                     "custom.extra.rollout_matching.offload.",
                                     "custom.extra.rollout_matching.rollout_buffer."};

const std::string* find(const Pairs& pairs, const std::string& name) {
  const auto found = std::ranges::find(pairs, name, &Pairs::value_type::first);
  return found == pairs.end() ? nullptr : &found->second;
}

struct Difference {
  std::string name, before, now;
};

/// The differences in the order of `now`, then the names that only `saved` has.
std::vector<Difference> differences(const Pairs& saved, const Pairs& now) {
  std::vector<Difference> list;
  for (const auto& [name, value] : now) {
    const std::string* before = find(saved, name);
    if (before == nullptr || *before != value)
      list.push_back({name, before == nullptr ? "absent" : *before, value});
  }
  for (const auto& [name, value] : saved) {
    if (find(now, name) == nullptr) list.push_back({name, value, "absent"});
  }
  return list;
}

/// Names, shapes and dtype of all parameters.
std::string parameters_text(const std::vector<NamedParameter>& parameters) {
  std::string layout;
  int64_t num_values = 0;
  for (const NamedParameter& parameter : parameters) {
    layout += fmt::format("{} {}", parameter.name, at::toString(parameter.tensor.scalar_type()));
    for (const int64_t size : parameter.tensor.sizes()) layout += fmt::format(" {}", size);
    layout += '\n';
    num_values += parameter.tensor.numel();
  }
  const char* dtype =
      parameters.empty() ? "none" : at::toString(parameters.front().tensor.scalar_type());
  return fmt::format("{} tensors, {} values, {}, layout {}", parameters.size(), num_values, dtype,
                     content_hash_of(layout));
}

/// One hash over names and values.
std::string values_hash(const std::vector<NamedParameter>& parameters) {
  std::string all;
  for (const NamedParameter& parameter : parameters) {
    all += parameter.name;
    for (const at::Tensor& tensor : parameter.stored()) {
      const at::Tensor values = tensor.detach().cpu().contiguous();
      all += ' ' +
             content_hash_of({static_cast<const char*>(values.const_data_ptr()), values.nbytes()});
    }
    all += '\n';
  }
  return content_hash_of(all);
}

std::string config_hash(const FingerprintInput& input) {
  const std::string path = join_path(input.model_dir, "config.json");
  const bool is_bfloat16 =
      !input.parameters.empty() && input.parameters.front().tensor.scalar_type() == at::kBFloat16;
  // As in a saved checkpoint, so that `model.model` may be the checkpoint itself.
  return content_hash_of(
      config_with_dtype(read_file(path), is_bfloat16 ? "bfloat16" : "float32", path));
}

/// Hash over the files that determine a prompt and its pixels, as a saved checkpoint has them.
std::string prompt_files_hash(const std::string& model_dir, const std::optional<ImageArea>& area) {
  std::string all;
  for (const char* name : {"tokenizer_config.json", "chat_template.json", "chat_template.jinja",
                           "processor_config.json", "preprocessor_config.json"}) {
    const std::string path = join_path(model_dir, name);
    const bool exists = is_file(path);
    std::string text = exists ? read_file(path) : "";
    if (area && !text.empty() && std::string_view(name).ends_with("processor_config.json"))
      text = processor_with_area(text, *area, path);
    all += fmt::format("{} {}\n", name, exists ? content_hash_of(text) : "absent");
  }
  return content_hash_of(all);
}

/// The records of both runs in words: ": it was data/a.jsonl, and is data/b.jsonl".
std::string records_text(const Fingerprint& saved, const Fingerprint& now) {
  const std::string key = "custom.train_jsonl";
  const std::string *before = find(saved.settings, key), *after = find(now.settings, key);
  if (before == nullptr || after == nullptr) return "";
  return *before == *after ? fmt::format(": {} has changed since", *before)
                           : fmt::format(" (was: {}; now: {})", *before, *after);
}

/// The settings of the model that differ: "model.bnb_4bit_use_double_quant: false → true".
std::string model_settings_text(const Fingerprint& saved, const Fingerprint& now) {
  Strings texts;
  for (const Difference& each : differences(saved.settings, now.settings)) {
    if (each.name.starts_with("model."))
      texts.push_back(fmt::format("{}: {} → {}", each.name, each.before, each.now));
  }
  return join(texts, ", ");
}

/// True for a hash, which tells a reader nothing.
bool is_hash(const std::string& value) {
  return value.size() == 16 && value.find_first_not_of("0123456789abcdef") == value.npos;
}

constexpr const char* kParameters = "model (parameters)";
constexpr const char* kBaseValues = "model (values of the adapter's base)";
constexpr const char* kRecords = "custom.train_jsonl (content)";
constexpr const char* kNumSamples = "training samples";
constexpr const char* kConfigFile = "model (config.json)";  // with the dtype of the parameters
constexpr const char* kWorldSize = "WORLD_SIZE";
constexpr const char* kAccumulation = "training.gradient_accumulation_steps";

/// Micro-batches of a window over all ranks; −1 if a saved fingerprint lacks them.
int64_t window_size(const Fingerprint& print) {
  int64_t product = 1;
  for (const char* name : {kWorldSize, kAccumulation}) {
    const std::string* value = find(print.fixed, name);
    const int64_t count = value == nullptr ? 0 : parse_digits(*value).value_or(0);
    if (count < 1) return -1;
    product *= count;
  }
  return product;
}

/// The difference in words, and how to keep the checkpoint's value.
std::pair<std::string, std::string> explain(const Difference& difference, const Fingerprint& saved,
                                            const Fingerprint& now) {
  if (difference.name == kRecords)
    return {"the checkpoint was trained on other records" + records_text(saved, now),
            "give the records that it was trained on"};
  const std::string loaded = difference.name == kBaseValues ? model_settings_text(saved, now) : "";
  if (!loaded.empty()) return {loaded, "load the model as the run of the checkpoint did"};
  if (is_hash(difference.before) && is_hash(difference.now))
    return {"the file has another content now", "restore the file"};
  return {fmt::format("checkpoint: {}; now: {}", difference.before, difference.now),
          fmt::format("set {} to the checkpoint's value", difference.name)};
}

}  // namespace

Fingerprint make_fingerprint(const FingerprintInput& input) {
  Fingerprint print;
  const auto fix = [&](const char* name, const auto& value) {
    print.fixed.emplace_back(name, fmt::format("{}", value));
  };
  fix(kParameters, parameters_text(input.parameters));
  if (!input.base_parameters.empty()) fix(kBaseValues, values_hash(input.base_parameters));
  fix(kConfigFile, config_hash(input));
  fix("model (tokenizer.json)",
      content_hash_of(read_file(join_path(input.model_dir, "tokenizer.json"))));
  fix(kRecords, input.dataset_hash);
  fix(kNumSamples, input.num_samples);
  if (!input.answer_format.empty() && input.answer_format != kDefaultAnswerFormat)
    fix("custom.answer_format", input.answer_format);
  if (input.num_long_dropped > 0)
    fix("training samples dropped as too long", input.num_long_dropped);
  fix(kWorldSize, input.world_size);
  fix("training.per_device_train_batch_size", input.batches.per_device_train_batch_size);
  fix(kAccumulation, input.batches.gradient_accumulation_steps);
  fix("training.dataloader_drop_last", input.batches.drop_last);
  fix("training.seed", input.seed);
  fix("custom.trainer_variant", input.trainer_variant);
  fix("training.packing", input.pack.enabled);
  if (input.pack.enabled) {
    fix("custom.extra.rollout_matching.post_rollout_pack_scope", name_of(input.pack.scope));
    fix("global_max_length", input.packing_length);
    if (!input.stream_rows.empty()) fix("packing of the data stream", input.stream_rows);
  }
  fix("rollout_buffer m_steps", input.m_steps);
  fix("tuner.freeze_llm", input.freeze.llm);
  fix("tuner.freeze_vit", input.freeze.vit);
  fix("tuner.freeze_aligner", input.freeze.aligner);
  print.settings.emplace_back("model (chat template and processor)",
                              prompt_files_hash(input.model_dir, input.image_area));
  for (const auto& [key, value] : input.settings) {
    if (find(print.fixed, key) == nullptr && find(print.settings, key) == nullptr)
      print.settings.emplace_back(key, value);
  }
  return print;
}

bool affects_training(const std::string& key) {
  return std::ranges::none_of(kHarmless, [&](std::string_view name) {
    return name.back() == '.' || name.back() == '_' ? key.starts_with(name) : key == name;
  });
}

Strings compare_fingerprints(const Fingerprint& saved, const Fingerprint& now,
                             const std::string& checkpoint) {
  std::vector<Problem> problems;
  const bool same_windows = window_size(saved) > 0 && window_size(saved) == window_size(now);
  const std::vector<Difference> fixed = differences(saved.fixed, now.fixed);
  const bool other_records =
      std::ranges::any_of(fixed, [](const auto& each) { return each.name == kRecords; });
  for (const Difference& difference : fixed) {
    if (other_records && difference.name == kNumSamples) continue;  // that follows
    if (same_windows && (difference.name == kWorldSize || difference.name == kAccumulation))
      continue;
    const auto [what, keep] = explain(difference, saved, now);
    const std::string weights =
        is_adapter_dir(checkpoint)
            ? fmt::format("`rematch merge {} --out DIR` and `model.model: DIR`", checkpoint)
            : fmt::format("`model.model: {}`", checkpoint);
    problems.push_back(
        {.error = fmt::format("the checkpoint belongs to another run: {} differs", difference.name),
         .where = checkpoint,
         .what = what,
         .fix = fmt::format("{}, or start a new run from its weights: {}, without --resume and "
                            "training.resume_from_checkpoint",
                            keep, weights)});
  }
  if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
  Strings warnings;
  for (const Difference& difference : differences(saved.settings, now.settings)) {
    if (!affects_training(difference.name)) continue;
    std::string text = "resumed with a different " + difference.name;
    if (!is_hash(difference.before) || !is_hash(difference.now))
      text += fmt::format(": {} → {}", difference.before, difference.now);
    warnings.push_back(std::move(text));
  }
  return warnings;
}

void compare_known_values(Fingerprint saved, Fingerprint now, const std::string& checkpoint) {
  std::erase_if(now.fixed, [](const auto& pair) {
    return pair.first == kParameters || pair.first == kConfigFile;
  });
  std::erase_if(saved.fixed,
                [&](const auto& pair) { return find(now.fixed, pair.first) == nullptr; });
  saved.settings = now.settings;
  compare_fingerprints(saved, now, checkpoint);
}

}  // namespace rematch
