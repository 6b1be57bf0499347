#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "config/values.h"

namespace rematch {

/// Which trainer a configuration asks for (`custom.trainer_variant`).
enum class TrainerVariant {
  kSft,              ///< stage 1: supervised on the full answer
  kRolloutMatching,  ///< stage 2: rollout, match, target
};

/// `model.*` and the cap on lengths.
struct ModelConfig {
  std::string directory;                     ///< Hugging Face directory, relative to the current one
  std::string torch_dtype = "auto";          ///< "auto" (bfloat16 on GPU, float32 on CPU), "bfloat16", "float32"
  std::optional<int64_t> global_max_length;  ///< tokens of a segment and of a packed row; none = no cap
};

/// `custom.*_jsonl`, `data.*`, `template.system` and the prompts.
struct DataConfig {
  std::string train_jsonl;
  std::optional<std::string> val_jsonl;
  std::optional<int64_t> train_sample_limit;  ///< first N records
  std::optional<int64_t> val_sample_limit;
  bool random_object_order = false;          ///< `object_ordering: random`
  std::optional<std::string> system_prompt;  ///< none = built in
  std::optional<std::string> user_prompt;    ///< the text itself, also when the key named a file; none = built in
  int num_workers = 2;                       ///< decode threads; 0 = in the training thread
  int prefetch_factor = 2;                   ///< batches ahead for each worker
  bool drop_last = false;                    ///< drops an incomplete last micro-batch
};

/// `tuner.*`.
struct TunerConfig {
  bool use_adapter = false;  ///< `train_type: lora`
  bool freeze_llm = false, freeze_vit = false, freeze_aligner = false;
  int lora_rank = 8;
  double lora_alpha = 32;
  double lora_dropout = 0.05;  ///< 0..1
  bool use_dora = false;
  std::vector<std::string> target_modules{"all-linear"};
  std::optional<std::string> target_regex;  ///< instead of target_modules
  std::vector<std::string> modules_to_save;
};

/// AdamW, its groups and clipping.
struct OptimConfig {
  double learning_rate = 1e-5, vit_lr = 1e-5, aligner_lr = 1e-5;  ///< resolved: none of them falls back any more
  double weight_decay = 0.1;
  double adam_beta1 = 0.9, adam_beta2 = 0.95, adam_epsilon = 1e-8;
  double max_grad_norm = 1.0;  ///< 0 = no clipping
  bool gradient_checkpointing = false;
};

/// `training.lr_scheduler_*` and warm-up.
struct ScheduleConfig {
  std::string type = "cosine";  ///< a name of transformers
  double warmup_ratio = 0;      ///< of all optimizer steps; used when warmup_steps is 0
  int64_t warmup_steps = 0;
  std::optional<double> min_lr, min_lr_rate;  ///< exactly one for the types with a minimum
  std::optional<double> num_cycles;           ///< none = transformers' 0.5
  std::optional<double> warmup_lr_rate;
};

/// How long, in which batches, and when to log, evaluate and save.
struct CadenceConfig {
  uint64_t seed = 42;
  int per_device_train_batch_size = 1;
  int per_device_eval_batch_size = 1;
  int gradient_accumulation_steps = 1;  ///< resolved from effective_batch_size
  double num_train_epochs = 3;
  int64_t max_steps = -1;  ///< optimizer steps; ≤ 0 = by epochs
  int64_t logging_steps = 5;
  bool logging_first_step = true;
  std::string eval_strategy = "no";  ///< "no", "steps", "epoch"
  int64_t eval_steps = 500;
  std::string save_strategy = "steps";  ///< "no", "steps", "epoch", "best"
  int64_t save_steps = 500;
  std::optional<int64_t> save_total_limit;
  bool save_only_model = false;
  bool save_last_epoch = true;
  int64_t save_delay_steps = 0;
  double save_delay_epochs = 0;
  std::string metric_for_best_model;  ///< with its `eval_` prefix
  bool greater_is_better = true;
  std::optional<std::string> resume_from_checkpoint;
};

/// Where a run writes.
struct OutputConfig {
  std::string run_dir;      ///< output_dir[/vN-date-time][/run_name]
  std::string logging_dir;  ///< of TensorBoard events
  bool tensorboard = true;
};

/// Coordinate losses, resolved for the stage, and the normalisation.
struct LossConfig {
  double soft_ce_weight = 1, w1_weight = 1, gate_weight = 1;
  double temperature_coord = 1;           ///< > 0
  double target_sigma = 2;                ///< > 0, bins
  std::optional<double> target_truncate;  ///< bins
  bool per_row = false;                   ///< `loss_normalization: row`
};

/// `repeat_terminate.*` (BEHAVIOUR 4.5).
struct RepeatTerminateConfig {
  bool enabled = false;
  int min_new_tokens = 256;
  int max_consecutive_token_repeats = 64;
  int ngram_size = 64;
  int ngram_repeats = 2;
  std::optional<int> max_object_keys;
};

/// `vllm.*`.
struct VllmConfig {
  int tensor_parallel_size = 4;
  std::string python = "python3";
  std::optional<int64_t> max_model_len;  ///< from global_max_length
  std::optional<int> infer_batch_size;   ///< prompts of one call; none = all
  int sleep_level = 0;
  /// Every other key that has a value, by vLLM's name with its value as JSON text, in the table's order.
  std::vector<std::pair<std::string, std::string>> engine_args;
};

/// How rollouts are generated.
struct RolloutConfig {
  std::string backend = "vllm";  ///< "vllm", "hf", "native"; whether it exists is found out where it is made
  std::string backend_origin;    ///< where the choice was written, or "default"
  bool configured = false;       ///< the file has a rollout_matching section (stage 1 then measures rollouts too)
  int generate_batch_size = 1;
  int max_new_tokens = 512;
  double temperature = 0;  ///< 0 = greedy
  double top_p = 1;        ///< 1 = off
  int top_k = 0;           ///< 0 = off
  double repetition_penalty = 1;
  RepeatTerminateConfig repeat_terminate;
  int native_max_num_seqs = 64;
  std::optional<double> native_kv_cache_gib;  ///< none = automatic
  VllmConfig vllm;
};

/// Matching (BEHAVIOUR 6) and point transport (7.1).
struct MatchConfig {
  int candidate_top_k = 10;
  double maskiou_gate = 0.3;
  int maskiou_resolution = 256;
  double fp_cost = 1, fn_cost = 1;
  std::string ot_cost = "l2";  ///< "l1", "l2"
  double ot_epsilon = 10;      ///< bins
  int ot_iters = 30;
};

/// Packing, rollout buffer, offload and monitor dump.
struct PackConfig {
  bool enabled = false;
  int buffer = 512;              ///< segments
  double min_fill_ratio = 0.65;  ///< (0, 1]
  bool drop_last = true;
  std::string selector = "binpacking";                    ///< "binpacking", "optimal", "fifo"
  bool whole_window = false;                              ///< `post_rollout_pack_scope: window`
  bool rollout_buffer = false;                            ///< stage 2 only
  int m_steps = 1;                                        ///< optimizer steps on one window; 1 unless the rollout buffer is enabled
  bool offload_model = false, offload_optimizer = false;  ///< false unless offload is enabled
};

/// `monitor_dump.*`.
struct MonitorDumpConfig {
  bool enabled = false;
  int64_t every_steps = 5;
  bool dump_first_step = false;
  int max_events = 20, max_samples = 1, max_text_chars = 4000;
  std::string out_dir;  ///< resolved
  bool write_markdown = true;
};

/// A whole configuration, checked and resolved. Included by assembly/run.cc and cli/ only; every part has its own Options.
struct Config {
  TrainerVariant variant = TrainerVariant::kSft;
  ModelConfig model;
  DataConfig data;
  TunerConfig tuner;
  OptimConfig optim;
  ScheduleConfig schedule;
  CadenceConfig cadence;
  OutputConfig output;
  LossConfig loss;
  RolloutConfig rollout;
  MatchConfig match;
  PackConfig pack;
  MonitorDumpConfig monitor;

  bool is_stage_2() const { return variant == TrainerVariant::kRolloutMatching; }
};

/// A row of the effective configuration.
struct EffectiveValue {
  std::string key;
  std::string value;   ///< as JSON text, text values unquoted
  std::string origin;  ///< "file:line:col", "--set a.b.c", "default", "derived from …"
};

/// What load_config gives.
struct ConfigResult {
  Config config;
  std::vector<Warning> warnings;
  std::vector<EffectiveValue> effective;  ///< every honoured key, in the table's order
  std::vector<std::string> files;         ///< every file read, bases first
  std::shared_ptr<const Values> values;   ///< the values behind it, for effective_json
};

/// Reads, merges and checks a configuration, with everything resolved that follows from it.
/// @param path        YAML file. @param overrides  `a.b.c=value` of --set, later ones win
/// @param world_size  ranks, for gradient_accumulation_steps
/// @throws UserError (config) with ALL problems of the files together
ConfigResult load_config(const std::string& path, const std::vector<std::string>& overrides = {}, int world_size = 1);

/// The effective configuration as nested JSON by the users' own key names (args.json).
Json effective_json(const ConfigResult& result);

/// What `rematch check` prints: effective values by section with their origins, aligned, and each warning once.
std::string effective_text(const ConfigResult& result);

/// docs/config.md, generated from the table of keys.
std::string config_markdown();

}  // namespace rematch
