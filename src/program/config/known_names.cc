// Keys, commands and options that people type here out of habit: those of transformers, TRL,
// axolotl, LLaMA-Factory, ms-swift and Ultralytics.
#include <algorithm>

#include "base/text.h"
#include "program/config/suggest.h"

namespace rematch {
namespace {

constexpr KnownName kKeys[] = {
    {"lr lr0", "training.learning_rate"},
    {"mosaic mixup cutmix copy_paste erasing random_erasing auto_augment", "",
     "Rematch never joins or erases parts of pictures: remove the key; `data.augment` has `hflip`, "
     "`vflip`, `rot90`, `crop` and `color`"},
    {"fliplr horizontal_flip", "data.augment.hflip"},
    {"flipud vertical_flip", "data.augment.vflip"},
    {"hsv_h hsv_s hsv_v color_jitter", "data.augment.color", "one number for all"},
    {"lr_schedule lr_scheduler lr_decay_style scheduler", "training.lr_scheduler_type"},
    {"optim optim_args", "training.optimizer", "AdamW; the key chooses its learning rates"},
    {"wd", "training.weight_decay"},
    {"warmup warmup_fraction lr_warmup_fraction", "training.warmup_ratio"},
    {"lr_warmup_iters num_warmup_steps", "training.warmup_steps"},
    {"clip_grad gradient_clipping gradient_clip_val", "training.max_grad_norm"},
    {"epoch epochs num_epochs n_epochs", "training.num_train_epochs"},
    {"steps num_steps max_iters train_iters iterations", "training.max_steps"},
    {"batch batch_size global_batch_size total_batch_size train_batch_size",
     "training.effective_batch_size",
     "samples per optimizer step; `per_device_train_batch_size` of them are in memory at a time"},
    {"micro_batch_size per_gpu_train_batch_size per_device_batch_size",
     "training.per_device_train_batch_size"},
    {"eval_batch_size", "training.per_device_eval_batch_size"},
    {"grad_accum", "training.gradient_accumulation_steps"},
    {"label_smoothing label_smoothing_factor", "custom.coord_soft_ce_w1.target_sigma",
     "coordinates have soft targets of this width, text has no smoothing"},
    {"early_stopping early_stopping_threshold early_stop_interval patience",
     "training.early_stopping_patience",
     "evaluations without a new best; any improvement counts. `stop_on_harm: true` ends a run when "
     "its evaluation gets clearly worse"},
    {"load_best_model_at_end", "training.save_strategy", "`best` keeps the best checkpoint"},
    {"random_seed data_seed", "training.seed"},
    {"fsdp fsdp_config", "training.zero_stage",
     "1 shards the optimizer state, 2 the gradient sums too, 3 frozen weights too"},
    {"eval_every eval_interval val_check_interval", "training.eval_steps"},
    {"save_every save_interval save_period", "training.save_steps"},
    {"log_interval log_every", "training.logging_steps"},
    {"name exp_name", "training.run_name"},
    {"wandb_project use_wandb", "training.report_to", "`[wandb]`"},
    {"resume resume_from", "training.resume_from_checkpoint"},
    {"push_to_hub hub_model_id hub_token hub_strategy", "",
     "nothing is uploaded: `hf upload OWNER/NAME CHECKPOINT` does that"},
    {"overwrite_output_dir", "", "no run is overwritten: a second one takes the next free name"},
    {"model_name_or_path pretrained_model_name_or_path base_model model_id", "model.model",
     "a directory; hub ids are not downloaded"},
    {"model_path weights", "model.model"},
    {"dtype precision mixed_precision amp half", "model.torch_dtype"},
    {"attn_implementation flash_attention flash_attn use_flash_attn", "",
     "the device decides (docs/hardware.md): remove the key"},
    {"sequence_len cutoff_len max_seq_length max_seq_len model_max_length", "global_max_length"},
    {"imgsz img_size image_size", "",
     "`template.max_pixels` is an area: for 640 x 640 write 409600"},
    {"image_max_pixels", "template.max_pixels"},
    {"image_min_pixels", "template.min_pixels"},
    {"system_prompt", "template.system"},
    {"load_in_8bit quant_bits quant_method quantization_bit", "",
     "only 4 bits: `model.load_in_4bit: true` with `tuner.train_type: lora`"},
    {"bnb_4bit_compute_dtype", "model.torch_dtype", "weights are dequantised in it"},
    {"finetuning_type sft_type tuner_type", "tuner.train_type"},
    {"adapter", "tuner.train_type", "`lora`"},
    {"r lora_r", "tuner.lora_rank"},
    {"lora_target lora_target_modules", "tuner.target_modules"},
    {"freeze", "tuner.freeze_vit", "or `tuner.freeze_llm`, `tuner.freeze_aligner`"},
    {"freeze_vision_tower", "tuner.freeze_vit"},
    {"freeze_multi_modal_projector", "tuner.freeze_aligner"},
    {"freeze_language_model", "tuner.freeze_llm"},
    {"data dataset datasets train_file train_data dataset_path", "custom.train_jsonl"},
    {"val_dataset eval_dataset val_file val_data validation_file", "custom.val_jsonl"},
    {"split_dataset_ratio val_size val_set_size", "custom.val_jsonl", "a separate file"},
    {"workers num_workers", "data.dataloader_num_workers"},
    {"stage", "custom.trainer_variant", "`sft` is stage 1, `rollout_matching_sft` stage 2"},
    {"use_vllm", "custom.extra.rollout_matching.rollout_backend", "`vllm`"},
    {"vllm_gpu_memory_utilization", "custom.extra.rollout_matching.vllm.gpu_memory_utilization"},
    {"max_completion_length", "custom.extra.rollout_matching.max_new_tokens"},
    {"device gpus num_gpus nproc_per_node", "",
     "choose the device on the command line: --device cuda:0; several GPUs: docs/distributed.md"},
    {"remove_unused_columns group_by_length ddp_find_unused_parameters torch_compile "
     "use_liger_kernel lazy_tokenize streaming trust_remote_code use_hf bnb_4bit_quant_storage",
     "", "not needed here: remove it"},
};

constexpr KnownName kCommands[] = {
    {"sft pt fit finetune", "train"},
    {"val validate test evaluate", "eval"},
    {"infer inference detect", "predict"},
    {"export", "merge"},
    {"version -v -V", "--version"},
    {"serve deploy", "", "`vllm serve CHECKPOINT` does it (docs/serve.md)"},
    {"launch", "",
     "torchrun starts ranks: torchrun --no-python --nproc-per-node 2 rematch train my.yaml"},
    {"tokenize render pixels generate logits loss grad", "",
     "run `rematch-stages stage NAME` (`scripts/build rematch-stages` builds it)"},
    {"resume continue", "", "a run continues with `rematch train CONFIG --resume`"},
};

/// Words of tables and pages; each number in them is an `n`.
constexpr KnownName kWords[] = {
    {"neighbours_in_sorted_order neighbours neighbors", "",
     "share of an answer's neighbouring objects in the order of sorted truth, from top to bottom "
     "and left to right; 0.5 is chance, from 0.8 on the model has learnt the order"},
    {"missing_objects missing", "", "share of the true objects that the answers do not find"},
    {"of_these_found_by_samples found_by_n_samples found_by_samples", "",
     "share of the missing objects that a sampled answer (`probe --samples`) finds: what stage 2 "
     "can teach"},
    {"repeated", "", "share of the predictions that name an object a second time"},
    {"fn fn@.n fn_@_.n", "",
     "F1 of boxes with an IoU of at least the number after @, 0.5 without one, whatever their "
     "label; `gate F1` counts from maskiou_gate on"},
    {"label_fn label_fn@.n label_fn_@_.n", "rollout/f1_labels"},
    {"gate_p", "rollout/precision"},
    {"gate_r", "rollout/recall"},
    {"map ap mapn", "coco_ap"},
    {"malformed", "rollout/parse_malformed_rate"},
    {"score conf confidence threshold calibration calibrated", "",
     "share of boxes with such an answer that are right, 0 to 1, as `rematch eval` measured it and "
     "stored it with the checkpoint; `predict --min-score` leaves out what is below"},
    {"stage_n", "",
     "custom.trainer_variant: `sft` is stage 1, `rollout_matching_sft` stage 2 (docs/stage2.md)"},
    {"probe", "", "measures whether stage 2 can help (docs/probe.md)"},
};

constexpr KnownName kOptions[] = {
    {"--conf --threshold", "--min-score"},
    {"--save --show --visualize --project", "--draw"},
    {"--ratio --test-size --train", "--val"},
    {"--model --config --cfg --data --dataset --source --input --images --weights "
     "--model_name_or_path --train_jsonl",
     "", "give it without the option's name"},
};

}  // namespace

std::span<const KnownName> known_names(NameKind kind) {
  if (kind == NameKind::kKey) return kKeys;
  if (kind == NameKind::kWord) return kWords;
  return kind == NameKind::kCommand ? std::span<const KnownName>(kCommands) : kOptions;
}

const KnownName* find_known(NameKind kind, const std::string& name) {
  for (const KnownName& row : known_names(kind)) {
    const Strings names = split(row.names, ' ');
    if (contains(names, name)) return &row;
  }
  return nullptr;
}

}  // namespace rematch
