// Keys of training. "(ms-swift)" and "(transformers)" name whose default it is.
#include "config/schema.h"

namespace rematch {
namespace {

std::vector<KeySpec> optimizer_keys() {
  return {
      integer("training.per_device_train_batch_size", "1").at_least(1).says("samples of a micro-batch (ms-swift)"),
      integer("training.per_device_eval_batch_size", "1").at_least(1).says("samples of an evaluation batch (ms-swift)"),
      integer("training.effective_batch_size")
          .at_least(1)
          .says("samples of an optimizer step over all ranks; sets `gradient_accumulation_steps`"),
      integer("training.gradient_accumulation_steps", "1")
          .at_least(1)
          .says("micro-batches of a window (transformers; ms-swift would aim at 16 samples)"),
      number("training.num_train_epochs", "3").above(0).says("passes over the data (transformers); `max_steps` > 0 overrides it"),
      integer("training.max_steps", "-1").at_least(-1).says("optimizer steps; -1 or 0: by epochs (transformers)"),
      number("training.learning_rate")
          .at_least(0)
          .says("of the language model, and of the groups without their own; null: 1e-5 for full, 1e-4 for lora (ms-swift)"),
      number("training.vit_lr").at_least(0).says("of the vision tower; null: learning_rate"),
      number("training.aligner_lr").at_least(0).says("of the aligner; null: learning_rate"),
      number("training.weight_decay", "0.1").at_least(0).says("not for norm weights and biases (ms-swift)"),
      number("training.adam_beta1", "0.9").at_least(0).below(1).says("AdamW (transformers)"),
      number("training.adam_beta2", "0.95").at_least(0).below(1).says("AdamW (ms-swift)"),
      number("training.adam_epsilon", "1e-8").at_least(0).says("AdamW (transformers)"),
      number("training.max_grad_norm", "1").at_least(0).says("global-norm clipping; 0: none (transformers)"),
      text_key("training.optimizer", "multimodal")
          .one_of({"multimodal", "adamw_torch", "multimodal_coord_offset"})
          .needs("=multimodal_coord_offset", Capability::kCoordOffset)
          .says("AdamW with a learning rate for each of vit, aligner, llm; `adamw_torch` means the same"),
      number("training.warmup_ratio", "0").within(0, 1).says("part of the steps that warm up (ms-swift)"),
      integer("training.warmup_steps", "0").at_least(0).says("overrides warmup_ratio when > 0 (transformers)"),
      text_key("training.lr_scheduler_type", "cosine")
          .one_of({"constant", "constant_with_warmup", "linear", "cosine", "cosine_with_min_lr", "cosine_warmup_with_min_lr"})
          .says("as transformers defines them (ms-swift)"),
      number("training.lr_scheduler_kwargs.min_lr").at_least(0).says("end of the schedules with a minimum; this or min_lr_rate"),
      number("training.lr_scheduler_kwargs.min_lr_rate").within(0, 1).says("the same as a part of the learning rate"),
      number("training.lr_scheduler_kwargs.num_cycles").above(0).says("waves of the cosine; null: 0.5 (transformers)"),
      number("training.lr_scheduler_kwargs.warmup_lr_rate")
          .within(0, 1)
          .says("start of cosine_warmup_with_min_lr's warm-up as a part of the learning rate"),
      integer("training.seed", "42").at_least(0).says("of everything random (transformers)"),
      boolean("training.bf16").says("true: `model.torch_dtype: bfloat16`"),
      boolean("training.fp16").refuses("on", "float16 overflows in training: use `bf16: true`").says("only false"),
      boolean("training.gradient_checkpointing", "false")
          .needs("on", Capability::kGradientCheckpointing)
          .says("recomputes activations in the backward pass to save memory (ms-swift: true)"),
      boolean("training.dataloader_drop_last", "false").says("drops an incomplete last micro-batch of an epoch (transformers)"),
  };
}

std::vector<KeySpec> output_keys() {
  const std::string log_instead = "ignored; every step is in `logging.jsonl` of the run directory";
  return {
      text_key("training.output_dir", "output").says("runs are written below it, relative to the current directory (ms-swift)"),
      text_key("training.run_name").says("the run directory is output_dir/run_name; null: output_dir itself"),
      boolean("training.add_version", "false").says("puts `vN-YYYYMMDD-HHMMSS` before run_name (ms-swift: true)"),
      text_key("training.logging_dir").says("where TensorBoard events go; null: `runs` in the run directory"),
      string_list("training.report_to", "[tensorboard]")
          .one_of({"tensorboard", "none", "wandb", "swanlab"})
          .warns("=wandb", log_instead)
          .warns("=swanlab", log_instead)
          .says("`tensorboard`, `none` (ms-swift)"),
      integer("training.logging_steps", "5").at_least(1).says("steps between log lines (ms-swift)"),
      boolean("training.logging_first_step", "true").says("logs step 1 too (ms-swift)"),
      text_key("training.eval_strategy")
          .one_of({"no", "steps", "epoch"})
          .says("null: as save_strategy when `custom.val_jsonl` is given, else no (ms-swift)"),
      integer("training.eval_steps").at_least(1).says("optimizer steps between evaluations; null: save_steps (ms-swift)"),
      ignored("training.eval_packing", "evaluation does not pack"),
      text_key("training.save_strategy", "steps")
          .one_of({"steps", "epoch", "best", "no"})
          .says("when checkpoints are written (transformers)"),
      integer("training.save_steps", "500").at_least(1).says("optimizer steps between checkpoints (transformers)"),
      integer("training.save_total_limit")
          .at_least(1)
          .says("checkpoints kept; the best and the newest are never deleted; null: all (transformers)"),
      boolean("training.save_only_model", "false").says("no training state in checkpoints (transformers)"),
      boolean("training.save_last_epoch", "true").says("a final checkpoint at the end"),
      integer("training.save_delay_steps", "0").at_least(0).says("no checkpoint before this step"),
      number("training.save_delay_epochs", "0").at_least(0).says("no checkpoint before this epoch"),
      ignored("training.save_safetensors", "weights are always safetensors"),
      text_key("training.metric_for_best_model")
          .says("stage 1: `eval_loss` (default), `eval_token_acc`; stage 2: `eval_rollout_f1` (default), `eval_rollout_…`"),
      boolean("training.greater_is_better").says("null: true unless the metric's name ends in `loss` (transformers)"),
      text_key("training.resume_from_checkpoint")
          .null_is({"null", "false"})
          .needs("on", Capability::kResume)
          .says("`latest` or a checkpoint directory"),
      boolean("training.packing", "false")
          .needs("on", Capability::kPacking)
          .says("rows of several segments up to `global_max_length` (ms-swift)"),
      integer("training.packing_buffer", "512").at_least(1).says("segments that may wait for a row"),
      number("training.packing_min_fill_ratio", "0.65").within(0, 1).above(0).says("a row filled less gives a warning"),
      boolean("training.packing_drop_last", "true").says("stage 2: only true (carry-only); stage 1: false flushes the last row"),
      refused("training.packing_length", "use `global_max_length`, the cap of a segment and of a row"),
      refused("training.packing_allow_single_long", "an oversize sample is an error: raise `global_max_length` or shorten the sample"),
  };
}

}  // namespace

std::vector<KeySpec> training_keys() {
  std::vector<KeySpec> keys = optimizer_keys();
  for (KeySpec& spec : output_keys()) keys.push_back(std::move(spec));
  return keys;
}

}  // namespace rematch
