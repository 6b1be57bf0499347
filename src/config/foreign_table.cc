// The ONE table of keys of other trainers (transformers, TRL, axolotl, LLaMA-Factory, ms-swift,
// Ultralytics) and their counterparts here.
#include "config/foreign.h"

namespace rematch {
namespace {

constexpr const char* kNoQuantization =
    "weights are not quantised here: `tuner.train_type: lora` with `model.torch_dtype: bfloat16` "
    "needs the least memory; `rematch plan CONFIG --gpu-memory GIB` shows what fits";
constexpr const char* kNoUpload =
    "nothing is uploaded; a checkpoint is a Hugging Face directory: hf upload OWNER/NAME "
    "CHECKPOINT";
constexpr const char* kStopOnHarm =
    "there is no patience: `stop_on_harm: true` ends a run when its evaluation gets clearly worse, "
    "`save_strategy: best` keeps the best checkpoint";
constexpr const char* kNotNeeded = "not needed here: remove it";
constexpr const char* kCommandLine =
    "choose the device on the command line: --device cuda:0; several GPUs: docs/distributed.md";
constexpr const char* kAttention =
    "the device decides the attention implementation (docs/devices.md): remove the key";
constexpr const char* kBatch =
    "samples per optimizer step; `per_device_train_batch_size` of them are in memory at a time";
constexpr const char* kSplit = "validation records are in a separate file";

std::vector<ForeignKey> training_rows() {
  return {
      {"lr", "training.learning_rate", ""},
      {"lr0", "training.learning_rate", ""},
      {"lrf", "training.lr_scheduler_kwargs.min_lr_rate", ""},
      {"lr_schedule", "training.lr_scheduler_type", ""},
      {"lr_scheduler", "training.lr_scheduler_type", ""},
      {"lr_decay_style", "training.lr_scheduler_type", ""},
      {"scheduler", "training.lr_scheduler_type", ""},
      {"optim", "training.optimizer", "it is always AdamW; the key chooses its learning rates"},
      {"optim_args", "training.optimizer", "it is always AdamW: `adam_beta1`, `adam_epsilon` …"},
      {"betas", "training.adam_beta1", "and `training.adam_beta2`"},
      {"wd", "training.weight_decay", ""},
      {"warmup", "training.warmup_ratio", ""},
      {"warmup_fraction", "training.warmup_ratio", ""},
      {"lr_warmup_fraction", "training.warmup_ratio", ""},
      {"lr_warmup_iters", "training.warmup_steps", ""},
      {"num_warmup_steps", "training.warmup_steps", ""},
      {"clip_grad", "training.max_grad_norm", ""},
      {"gradient_clipping", "training.max_grad_norm", ""},
      {"gradient_clip_val", "training.max_grad_norm", ""},
      {"epochs", "training.num_train_epochs", ""},
      {"num_epochs", "training.num_train_epochs", ""},
      {"n_epochs", "training.num_train_epochs", ""},
      {"steps", "training.max_steps", ""},
      {"num_steps", "training.max_steps", ""},
      {"max_iters", "training.max_steps", ""},
      {"train_iters", "training.max_steps", ""},
      {"iterations", "training.max_steps", ""},
      {"batch", "training.effective_batch_size", kBatch},
      {"batch_size", "training.effective_batch_size", kBatch},
      {"global_batch_size", "training.effective_batch_size", kBatch},
      {"total_batch_size", "training.effective_batch_size", kBatch},
      {"train_batch_size", "training.effective_batch_size", kBatch},
      {"micro_batch_size", "training.per_device_train_batch_size", ""},
      {"per_gpu_train_batch_size", "training.per_device_train_batch_size", ""},
      {"per_device_batch_size", "training.per_device_train_batch_size", ""},
      {"auto_find_batch_size", "training.per_device_train_batch_size",
       "there is no search: `rematch plan CONFIG` shows how large a batch fits"},
      {"eval_batch_size", "training.per_device_eval_batch_size", ""},
      {"gradient_accumulation", "training.gradient_accumulation_steps", ""},
      {"grad_accum", "training.gradient_accumulation_steps", ""},
      {"gradient_checkpointing_kwargs", "training.gradient_checkpointing", ""},
      {"label_smoothing", "custom.coord_soft_ce_w1.target_sigma",
       "coordinates have soft targets of this width, text has no smoothing"},
      {"label_smoothing_factor", "custom.coord_soft_ce_w1.target_sigma",
       "coordinates have soft targets of this width, text has no smoothing"},
      {"early_stopping", "training.stop_on_harm", kStopOnHarm},
      {"early_stopping_patience", "training.stop_on_harm", kStopOnHarm},
      {"early_stopping_threshold", "training.stop_on_harm", kStopOnHarm},
      {"early_stop_interval", "training.stop_on_harm", kStopOnHarm},
      {"patience", "training.stop_on_harm", kStopOnHarm},
      {"load_best_model_at_end", "training.save_strategy",
       "`best` keeps the best checkpoint; give it to `rematch eval` or `predict`"},
      {"random_seed", "training.seed", ""},
      {"data_seed", "training.seed", ""},
      {"fsdp", "training.zero_stage", "1 shards the optimizer state, 2 the gradient sums too"},
      {"fsdp_config", "training.zero_stage",
       "1 shards the optimizer state, 2 the gradient sums too"},
      {"neftune_noise_alpha", "custom.coord_input_noise",
       "noise on the input coordinates; text and embeddings get none"},
  };
}

std::vector<ForeignKey> output_rows() {
  return {
      {"evaluation_strategy", "training.eval_strategy", ""},
      {"eval_every", "training.eval_steps", ""},
      {"eval_interval", "training.eval_steps", ""},
      {"val_check_interval", "training.eval_steps", ""},
      {"save_every", "training.save_steps", ""},
      {"save_interval", "training.save_steps", ""},
      {"save_period", "training.save_steps", ""},
      {"keep_last", "training.save_total_limit", ""},
      {"log_interval", "training.logging_steps", ""},
      {"log_every", "training.logging_steps", ""},
      {"save_dir", "training.output_dir", ""},
      {"project", "training.output_dir", "the run directory is output_dir/run_name"},
      {"name", "training.run_name", ""},
      {"exp_name", "training.run_name", ""},
      {"wandb_project", "training.report_to", "`[wandb]`"},
      {"use_wandb", "training.report_to", "`[wandb]`"},
      {"resume", "training.resume_from_checkpoint", "`latest`, or a checkpoint's directory"},
      {"resume_from", "training.resume_from_checkpoint", "`latest`, or a checkpoint's directory"},
      {"push_to_hub", "", kNoUpload},
      {"hub_model_id", "", kNoUpload},
      {"hub_token", "", kNoUpload},
      {"hub_strategy", "", kNoUpload},
      {"do_train", "", "the command decides: `rematch train`"},
      {"do_eval", "", "the command decides: `rematch eval`; while training: `eval_strategy`"},
      {"overwrite_output_dir", "", "no run is overwritten; choose another `training.run_name`"},
  };
}

std::vector<ForeignKey> model_rows() {
  return {
      {"model_name_or_path", "model.model", "a directory; hub ids are not downloaded"},
      {"pretrained_model_name_or_path", "model.model", "a directory; hub ids are not downloaded"},
      {"base_model", "model.model", "a directory; hub ids are not downloaded"},
      {"model_id", "model.model", "a directory; hub ids are not downloaded"},
      {"model_path", "model.model", ""},
      {"weights", "model.model", ""},
      {"model_type", "template.template", "the family is read from config.json; usually not set"},
      {"dtype", "model.torch_dtype", ""},
      {"precision", "model.torch_dtype", ""},
      {"mixed_precision", "model.torch_dtype", ""},
      {"amp", "model.torch_dtype", ""},
      {"half", "model.torch_dtype", ""},
      {"attn_implementation", "", kAttention},
      {"flash_attention", "", kAttention},
      {"flash_attn", "", kAttention},
      {"use_flash_attn", "", kAttention},
      {"sequence_len", "global_max_length", ""},
      {"cutoff_len", "global_max_length", ""},
      {"max_seq_length", "global_max_length", ""},
      {"max_seq_len", "global_max_length", ""},
      {"model_max_length", "global_max_length", ""},
      {"imgsz", "template.max_pixels", "an area: 640 x 640 is 409600"},
      {"img_size", "template.max_pixels", "an area: 640 x 640 is 409600"},
      {"image_size", "template.max_pixels", "an area: 640 x 640 is 409600"},
      {"image_max_pixels", "template.max_pixels", ""},
      {"image_min_pixels", "template.min_pixels", ""},
      {"system_prompt", "template.system", ""},
      {"load_in_4bit", "", kNoQuantization},
      {"load_in_8bit", "", kNoQuantization},
      {"quant_bits", "", kNoQuantization},
      {"quant_method", "", kNoQuantization},
      {"quantization_bit", "", kNoQuantization},
      {"bnb_4bit_compute_dtype", "", kNoQuantization},
      {"bnb_4bit_quant_type", "", kNoQuantization},
      {"finetuning_type", "tuner.train_type", ""},
      {"sft_type", "tuner.train_type", ""},
      {"tuner_type", "tuner.train_type", ""},
      {"adapter", "tuner.train_type", "`lora`"},
      {"r", "tuner.lora_rank", ""},
      {"lora_r", "tuner.lora_rank", ""},
      {"lora_target", "tuner.target_modules", ""},
      {"lora_target_modules", "tuner.target_modules", ""},
      {"use_rslora", "tuner.lora_alpha", "the scale is lora_alpha / lora_rank"},
      {"freeze", "tuner.freeze_vit", "or `tuner.freeze_llm`, `tuner.freeze_aligner`"},
      {"freeze_vision_tower", "tuner.freeze_vit", ""},
      {"freeze_multi_modal_projector", "tuner.freeze_aligner", ""},
      {"freeze_language_model", "tuner.freeze_llm", ""},
  };
}

std::vector<ForeignKey> data_rows() {
  return {
      {"dataset", "custom.train_jsonl", ""},
      {"datasets", "custom.train_jsonl", ""},
      {"train_file", "custom.train_jsonl", ""},
      {"train_data", "custom.train_jsonl", ""},
      {"dataset_path", "custom.train_jsonl", ""},
      {"val_dataset", "custom.val_jsonl", ""},
      {"eval_dataset", "custom.val_jsonl", ""},
      {"val_file", "custom.val_jsonl", ""},
      {"val_data", "custom.val_jsonl", ""},
      {"validation_file", "custom.val_jsonl", ""},
      {"split_dataset_ratio", "custom.val_jsonl", kSplit},
      {"val_size", "custom.val_jsonl", kSplit},
      {"val_set_size", "custom.val_jsonl", kSplit},
      {"workers", "data.dataloader_num_workers", ""},
      {"num_workers", "data.dataloader_num_workers", ""},
      {"stage", "custom.trainer_variant", "`sft` is stage 1, `rollout_matching_sft` stage 2"},
      {"use_vllm", "custom.extra.rollout_matching.rollout_backend", "`vllm`"},
      {"vllm_gpu_memory_utilization", "custom.extra.rollout_matching.vllm.gpu_memory_utilization",
       ""},
      {"max_completion_length", "custom.extra.rollout_matching.max_new_tokens", ""},
      {"device", "", kCommandLine},
      {"gpus", "", kCommandLine},
      {"num_gpus", "", kCommandLine},
      {"nproc_per_node", "", kCommandLine},
      {"remove_unused_columns", "", kNotNeeded},
      {"group_by_length", "", kNotNeeded},
      {"ddp_find_unused_parameters", "", kNotNeeded},
      {"torch_compile", "", kNotNeeded},
      {"use_liger_kernel", "", kNotNeeded},
      {"lazy_tokenize", "", kNotNeeded},
      {"streaming", "", kNotNeeded},
      {"trust_remote_code", "", kNotNeeded},
      {"use_hf", "", kNotNeeded},
  };
}

}  // namespace

const std::vector<ForeignKey>& foreign_table() {
  static const std::vector<ForeignKey> table = [] {
    std::vector<ForeignKey> all = training_rows();
    for (const std::vector<ForeignKey>& part : {output_rows(), model_rows(), data_rows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

}  // namespace rematch
