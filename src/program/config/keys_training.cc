// Keys of training for batches, optimizer, schedule and ranks. "(ms-swift)" and "(transformers)"
// name the program that has the same default.
#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec> length_keys() {
  const KeysOf batch("training.", part<&Settings::batches>);
  const KeysOf evaluation("training.", part<&Settings::evaluation>);
  const KeysOf cadence("training.", part<&Settings::cadence>);
  return {
      batch.of<&BatchSettings::per_device_train_batch_size>("samples per micro-batch (ms-swift)")
          .within(1, 1e6),
      evaluation
          .of<&EvaluationSettings::per_device_eval_batch_size>(
              "samples per evaluation batch (ms-swift)")
          .within(1, 1e6),
      integer_key("training.effective_batch_size")
          .at_least(1)
          .says("samples per optimizer step over all ranks; sets `gradient_accumulation_steps`"),
      batch
          .of<&BatchSettings::gradient_accumulation_steps>(
              "micro-batches per window (transformers; ms-swift aims at 16 samples)")
          .within(1, 1e6),
      cadence
          .of<&CadenceSettings::num_train_epochs>(
              "passes over the data (transformers); `max_steps` > 0 overrides it")
          .above(0)
          .up_to(1e5),
      cadence.of<&CadenceSettings::max_steps>("optimizer steps; -1 or 0: by epochs (transformers)")
          .at_least(-1),
  };
}

std::vector<KeySpec> optimizer_keys() {
  const KeysOf key("training.", part<&Settings::optim>);
  const KeysOf adam("training.adam_", part<&Settings::optim, &OptimSettings::adam>);
  return {
      key.of<&OptimSettings::learning_rate>(
             "learning rate of the language model, and of parts without their own; null: 1e-5 "
             "for full, 1e-4 for lora (ms-swift)")
          .null_by_default()
          .within(0, 1000),
      key.of<&OptimSettings::vit_lr>("learning rate of the vision tower; null: learning_rate")
          .within(0, 1000),
      key.of<&OptimSettings::aligner_lr>("learning rate of the aligner; null: learning_rate")
          .within(0, 1000),
      key.of<&OptimSettings::weight_decay>("not applied to norm weights and biases (ms-swift)")
          .within(0, 1000),
      adam.of<&AdamWSettings::beta1>("AdamW (transformers)").at_least(0).below(1),
      adam.of<&AdamWSettings::beta2>("AdamW (ms-swift)").at_least(0).below(1),
      adam.of<&AdamWSettings::epsilon>("AdamW (transformers)").within(1e-30, 1),
      key.of<&OptimSettings::max_grad_norm>("global-norm clipping; 0: none (transformers)")
          .at_least(0),
      key.of<&OptimSettings::zero_stage>(
             "several ranks: 1 and 2 shard optimizer state and gradients across ranks, 3 frozen "
             "weights too (stage 1 with an adapter; also read from `deepspeed`: zero1, zero2, "
             "…)")
          .within(0, 3),
      key.of<&OptimSettings::exact_ranks>(
          "several ranks: sums gradients row by row in window order, for the same bits on any "
          "number of ranks; m rows per rank take (m + 1) / 2 times the traffic"),
      text_key("training.optimizer", "multimodal")
          .one_of({"multimodal", "adamw_torch"})
          .refuses("=multimodal_coord_offset",
                   "the coordinate-offset adapter is not supported: set it to `multimodal`")
          .says("AdamW with a learning rate each for vit, aligner and llm; `adamw_torch` is a "
                "synonym"),
  };
}

std::vector<KeySpec> schedule_keys() {
  const KeysOf key("training.", part<&Settings::schedule>),
      kwargs("training.lr_scheduler_kwargs.", part<&Settings::schedule>);
  return {
      key.of<&ScheduleSettings::warmup_ratio>("share of the steps used for warm-up (ms-swift)")
          .within(0, 1),
      key.of<&ScheduleSettings::warmup_steps>("overrides warmup_ratio when > 0 (transformers)")
          .at_least(0),
      key("lr_scheduler_type", &ScheduleSettings::type,
          "learning-rate schedule, as in transformers (ms-swift)"),
      kwargs
          .of<&ScheduleSettings::min_lr>(
              "final learning rate of the `…_min_lr` schedules; set this or min_lr_rate")
          .within(0, 1000),
      kwargs.of<&ScheduleSettings::min_lr_rate>("min_lr as a fraction of the learning rate")
          .within(0, 1),
      kwargs.of<&ScheduleSettings::num_cycles>("periods of the cosine; null: 0.5 (transformers)")
          .above(0)
          .up_to(1e6),
      kwargs
          .of<&ScheduleSettings::warmup_lr_rate>(
              "`cosine_warmup_with_min_lr`: first learning rate of the warm-up, as a fraction of "
              "the learning rate")
          .within(0, 1),
  };
}

std::vector<KeySpec> run_keys() {
  const KeysOf key("training.", part<>);
  const KeysOf model("training.", part<&Settings::model>);
  const KeysOf batch("training.", part<&Settings::batches>);
  return {
      key.of<&Settings::seed>("seed of all random numbers (transformers)").at_least(0),
      boolean_key("training.bf16").says("true: `model.torch_dtype: bfloat16`"),
      boolean_key("training.fp16")
          .refuses("on", "float16 overflows in training: use `bf16: true`")
          .says("only false"),
      model.of<&ModelSettings::gradient_checkpointing>(
          "recomputes activations in the backward pass to save memory; `selective` keeps the "
          "results of the language model's matrix products: faster, for more memory "
          "(ms-swift: true)"),
      batch("dataloader_drop_last", &BatchSettings::drop_last,
            "drops an incomplete last micro-batch of an epoch (transformers)"),
      key.of<&Settings::ddp_backend>(
          "several ranks: library that exchanges gradients and weights; `nccl` needs a GPU "
          "for each rank and a build with NCCL; `auto` takes it where both are there, else "
          "`gloo` (transformers)"),
      key.of<&Settings::ddp_bucket_cap_mb>(
             "several ranks: MiB of gradients sent at once, as soon as the backward pass has "
             "computed them; no effect on results (transformers)")
          .within(1, 1 << 20),
      key.of<&Settings::ddp_timeout>(
             "several ranks: seconds to wait for a rank that does not start or makes no "
             "progress (transformers)")
          .within(1, 1e8),
  };
}

}  // namespace

std::vector<KeySpec> training_keys() {
  return join_keys({length_keys(), optimizer_keys(), schedule_keys(), run_keys()});
}

}  // namespace rematch
