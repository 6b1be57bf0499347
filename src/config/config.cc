#include "config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/rules.h"
#include "config/run_dir.h"
#include "config/source.h"

namespace rematch {
namespace {

/// Reads typed values, with nulls as nullopt.
class Reader {
 public:
  explicit Reader(const Values& values, std::string prefix) : values_(values), prefix_(std::move(prefix)) {}

  bool boolean(const char* key) const { return values_.boolean(prefix_ + key); }
  int integer(const char* key) const { return static_cast<int>(values_.integer(prefix_ + key)); }
  int64_t wide(const char* key) const { return values_.integer(prefix_ + key); }
  double number(const char* key) const { return values_.number(prefix_ + key); }
  std::string text(const char* key) const { return values_.text(prefix_ + key); }
  std::vector<std::string> texts(const char* key) const { return values_.texts(prefix_ + key); }
  bool is_null(const char* key) const { return values_.is_null(prefix_ + key); }

  std::optional<int64_t> maybe_wide(const char* key) const { return is_null(key) ? std::nullopt : std::optional(wide(key)); }
  std::optional<int> maybe_integer(const char* key) const { return is_null(key) ? std::nullopt : std::optional(integer(key)); }
  std::optional<double> maybe_number(const char* key) const { return is_null(key) ? std::nullopt : std::optional(number(key)); }
  std::optional<std::string> maybe_text(const char* key) const { return is_null(key) ? std::nullopt : std::optional(text(key)); }

 private:
  const Values& values_;
  std::string prefix_;
};

void fill_model_and_data(const Values& values, Config& config) {
  const Reader root(values, ""), training(values, "training.");
  const Reader custom(values, "custom.");
  config.model = {root.text("model.model"), root.text("model.torch_dtype"), root.maybe_wide("global_max_length")};
  DataConfig& data = config.data;
  data.train_jsonl = custom.text("train_jsonl");
  data.val_jsonl = custom.maybe_text("val_jsonl");
  data.train_sample_limit = custom.maybe_wide("train_sample_limit");
  data.val_sample_limit = custom.maybe_wide("val_sample_limit");
  data.random_object_order = custom.text("object_ordering") == "random";
  data.system_prompt = root.maybe_text("template.system");
  data.user_prompt = custom.maybe_text("user_prompt");
  data.num_workers = root.integer("data.dataloader_num_workers");
  data.prefetch_factor = root.integer("data.dataloader_prefetch_factor");
  data.drop_last = training.boolean("dataloader_drop_last");
}

void fill_optimization(const Values& values, Config& config) {
  const Reader tuner(values, "tuner."), training(values, "training."), kwargs(values, "training.lr_scheduler_kwargs.");
  config.tuner = {tuner.text("train_type") == "lora", tuner.boolean("freeze_llm"),   tuner.boolean("freeze_vit"),
                  tuner.boolean("freeze_aligner"),    tuner.integer("lora_rank"),    tuner.number("lora_alpha"),
                  tuner.number("lora_dropout"),       tuner.boolean("use_dora"),     tuner.texts("target_modules"),
                  tuner.maybe_text("target_regex"),   tuner.texts("modules_to_save")};
  config.optim = {training.number("learning_rate"), training.number("vit_lr"),        training.number("aligner_lr"),
                  training.number("weight_decay"),  training.number("adam_beta1"),    training.number("adam_beta2"),
                  training.number("adam_epsilon"),  training.number("max_grad_norm"), training.boolean("gradient_checkpointing")};
  config.schedule = {training.text("lr_scheduler_type"),   training.number("warmup_ratio"),    training.wide("warmup_steps"),
                     kwargs.maybe_number("min_lr"),        kwargs.maybe_number("min_lr_rate"), kwargs.maybe_number("num_cycles"),
                     kwargs.maybe_number("warmup_lr_rate")};
}

void fill_cadence(const Values& values, Config& config) {
  const Reader training(values, "training.");
  CadenceConfig& cadence = config.cadence;
  cadence.seed = static_cast<uint64_t>(training.wide("seed"));
  cadence.per_device_train_batch_size = training.integer("per_device_train_batch_size");
  cadence.per_device_eval_batch_size = training.integer("per_device_eval_batch_size");
  cadence.gradient_accumulation_steps = training.integer("gradient_accumulation_steps");
  cadence.num_train_epochs = training.number("num_train_epochs");
  cadence.max_steps = training.wide("max_steps");
  cadence.logging_steps = training.wide("logging_steps");
  cadence.logging_first_step = training.boolean("logging_first_step");
  cadence.eval_strategy = training.text("eval_strategy");
  cadence.eval_steps = training.wide("eval_steps");
  cadence.save_strategy = training.text("save_strategy");
  cadence.save_steps = training.wide("save_steps");
  cadence.save_total_limit = training.maybe_wide("save_total_limit");
  cadence.save_only_model = training.boolean("save_only_model");
  cadence.save_last_epoch = training.boolean("save_last_epoch");
  cadence.save_delay_steps = training.wide("save_delay_steps");
  cadence.save_delay_epochs = training.number("save_delay_epochs");
  cadence.metric_for_best_model = training.text("metric_for_best_model");
  cadence.greater_is_better = training.boolean("greater_is_better");
  cadence.resume_from_checkpoint = training.maybe_text("resume_from_checkpoint");
  if (cadence.resume_from_checkpoint == "true") cadence.resume_from_checkpoint = "latest";  // transformers' spelling
}

void fill_output(Values& values, Config& config) {
  const Reader training(values, "training.");
  OutputConfig& output = config.output;
  output.run_dir = run_directory({.output_dir = training.text("output_dir"),
                                  .add_version = training.boolean("add_version"),
                                  .run_name = training.maybe_text("run_name"),
                                  .go_on = config.cadence.resume_from_checkpoint == "latest"});
  if (training.is_null("logging_dir")) values.derive("training.logging_dir", output.run_dir + "/runs", "the run directory");
  output.logging_dir = training.text("logging_dir");
  const std::vector<std::string> sinks = training.texts("report_to");
  output.tensorboard = std::find(sinks.begin(), sinks.end(), "tensorboard") != sinks.end();

  MonitorDumpConfig& monitor = config.monitor;
  const Reader dump(values, kRolloutMatching + ".monitor_dump.");
  monitor = {dump.boolean("enabled"),
             dump.maybe_wide("every_steps").value_or(config.cadence.logging_steps),
             dump.boolean("dump_first_step"),
             dump.integer("max_events"),
             dump.integer("max_samples"),
             dump.integer("max_text_chars"),
             dump.maybe_text("out_dir").value_or(output.run_dir + "/monitor_dumps"),
             dump.boolean("write_markdown")};
}

void fill_vllm(const Values& values, VllmConfig& vllm) {
  const std::string prefix = kRolloutMatching + ".vllm.";
  const Reader reader(values, prefix);
  vllm.tensor_parallel_size = reader.integer("tensor_parallel_size");
  vllm.python = reader.text("python");
  vllm.max_model_len = reader.maybe_wide("max_model_len");
  vllm.infer_batch_size = reader.maybe_integer("infer_batch_size");
  vllm.sleep_level = reader.integer("sleep_level");
  const std::vector<std::string> own = {"mode",        "tensor_parallel_size", "python", "max_model_len", "infer_batch_size",
                                        "sleep_level", "enable_lora"};
  Json limits = Json::object();
  for (const KeySpec& spec : schema()) {
    if (spec.path.rfind(prefix, 0) != 0 || values.is_null(spec.path)) continue;
    const std::string name = spec.path.substr(prefix.size());
    const std::string limit = "limit_mm_per_prompt.";
    if (name.rfind(limit, 0) == 0) {
      limits[name.substr(limit.size())] = values.json(spec.path);
    } else if (std::find(own.begin(), own.end(), name) == own.end()) {
      vllm.engine_args.emplace_back(name, values.json(spec.path).dump());
    }
  }
  vllm.engine_args.emplace_back("limit_mm_per_prompt", limits.dump());
}

void fill_rollout(const Values& values, Config& config) {
  const Reader reader(values, kRolloutMatching + ".");
  RolloutConfig& rollout = config.rollout;
  rollout.backend = reader.text("rollout_backend");
  rollout.backend_origin = values.origin(kRolloutMatching + ".rollout_backend");
  rollout.generate_batch_size = reader.integer("rollout_generate_batch_size");
  rollout.max_new_tokens = reader.integer("max_new_tokens");
  rollout.temperature = reader.number("temperature");
  rollout.top_p = reader.number("top_p");
  rollout.top_k = std::max(0, reader.maybe_integer("top_k").value_or(0));
  rollout.repetition_penalty = reader.number("repetition_penalty");
  rollout.repeat_terminate = {reader.boolean("repeat_terminate.enabled"),
                              reader.integer("repeat_terminate.min_new_tokens"),
                              reader.integer("repeat_terminate.max_consecutive_token_repeats"),
                              reader.integer("repeat_terminate.ngram_size"),
                              reader.integer("repeat_terminate.ngram_repeats"),
                              reader.maybe_integer("repeat_terminate.max_object_keys")};
  rollout.native_max_num_seqs = reader.integer("native.max_num_seqs");
  rollout.native_kv_cache_gib = reader.maybe_number("native.kv_cache_gib");
  fill_vllm(values, rollout.vllm);

  config.match = {reader.integer("candidate_top_k"), reader.number("maskiou_gate"), reader.integer("maskiou_resolution"),
                  reader.number("fp_cost"),          reader.number("fn_cost"),      reader.text("ot_cost"),
                  reader.number("ot_epsilon"),       reader.integer("ot_iters")};
}

void fill_loss_and_pack(const Values& values, Config& config) {
  const Reader stage_2(values, kRolloutMatching + "."), stage_1(values, "custom.coord_soft_ce_w1."), training(values, "training.");
  const Reader& own = config.is_stage_2() ? stage_2 : stage_1;
  config.loss = {own.number("soft_ce_weight"),
                 own.number("w1_weight"),
                 own.number("gate_weight"),
                 own.number(config.is_stage_2() ? "temperature_coord" : "temperature"),
                 own.number("target_sigma"),
                 own.maybe_number("target_truncate"),
                 stage_2.text("loss_normalization") == "row"};
  PackConfig& pack = config.pack;
  pack.enabled = training.boolean("packing");
  pack.buffer = training.integer("packing_buffer");
  pack.min_fill_ratio = training.number("packing_min_fill_ratio");
  pack.drop_last = training.boolean("packing_drop_last");
  pack.selector = stage_2.text("packing_selector");
  pack.whole_window = stage_2.text("post_rollout_pack_scope") == "window";
  pack.rollout_buffer = config.is_stage_2() && stage_2.boolean("rollout_buffer.enabled");
  pack.m_steps = pack.rollout_buffer ? stage_2.integer("rollout_buffer.m_steps") : 1;
  const bool offload = stage_2.boolean("offload.enabled");
  pack.offload_model = offload && stage_2.boolean("offload.offload_model");
  pack.offload_optimizer = offload && stage_2.boolean("offload.offload_optimizer");
}

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : python_json(value); }

std::vector<EffectiveValue> effective_values(const Values& values) {
  std::vector<EffectiveValue> rows;
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    const Json& value = values.json(spec.path);
    rows.push_back({spec.path,
                    value.is_null() ? (spec.required             ? "null"
                                       : spec.null_words.empty() ? "null"
                                                                 : spec.null_words.front())
                                    : shown(value),
                    values.origin(spec.path)});
  }
  return rows;
}

}  // namespace

ConfigResult load_config(const std::string& path, const std::vector<std::string>& overrides, int world_size) {
  std::vector<Problem> problems;
  const Source source = load_source(path, overrides, problems);
  const bool readable = problems.empty();
  CheckResult checked = check_keys(source.root, problems);
  // A file that could not be read would only add "required" for keys it may well hold.
  if (readable) apply_cross_rules(checked.values, {source, path, world_size}, problems, checked.warnings);
  if (!problems.empty()) throw UserError(ErrorKind::kConfig, std::move(problems));

  auto values = std::make_shared<Values>(checked.values);
  ConfigResult result;
  Config& config = result.config;
  const bool stage_2 = !values->is_null("custom.trainer_variant") && values->text("custom.trainer_variant") == "rollout_matching_sft";
  config.variant = stage_2 ? TrainerVariant::kRolloutMatching : TrainerVariant::kSft;
  fill_model_and_data(*values, config);
  fill_optimization(*values, config);
  fill_cadence(*values, config);
  fill_output(*values, config);
  fill_rollout(*values, config);
  fill_loss_and_pack(*values, config);
  const Node* custom = source.root.find("custom");
  const Node* extra = custom ? custom->find("extra") : nullptr;
  const Node* section = extra ? extra->find("rollout_matching") : nullptr;
  config.rollout.configured = section && !section->is_null();
  result.warnings = std::move(checked.warnings);
  result.effective = effective_values(*values);
  result.files = source.files;
  result.values = std::move(values);
  return result;
}

}  // namespace rematch
