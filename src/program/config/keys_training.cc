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
      batch.of<&BatchSettings::per_device_train_batch_size>().within(1, 1e6).says(
          "samples per micro-batch (ms-swift)"),
      evaluation.of<&EvaluationSettings::per_device_eval_batch_size>().within(1, 1e6).says(
          "samples per evaluation batch (ms-swift)"),
      integer_key("training.effective_batch_size")
          .at_least(1)
          .says("samples per optimizer step over all ranks; sets `gradient_accumulation_steps`"),
      batch.of<&BatchSettings::gradient_accumulation_steps>().within(1, 1e6).says(
          "micro-batches per window (transformers; ms-swift aims at 16 samples)"),
      cadence.of<&CadenceSettings::num_train_epochs>().above(0).up_to(1e5).says(
          "passes over the data (transformers); `max_steps` > 0 overrides it"),
      cadence.of<&CadenceSettings::max_steps>().at_least(-1).says(
          "optimizer steps; -1 or 0: by epochs (transformers)"),
  };
}

std::vector<KeySpec> optimizer_keys() {
  const KeysOf key("training.", part<&Settings::optim>);
  const KeysOf adam("training.adam_", part<&Settings::optim, &OptimSettings::adam>);
  return {
      key.of<&OptimSettings::learning_rate>().null_by_default().within(0, 1000).says(
          "learning rate of the language model, and of parts without their own; null: 1e-5 "
          "for full, 1e-4 for lora (ms-swift)"),
      key.of<&OptimSettings::vit_lr>().within(0, 1000).says(
          "learning rate of the vision tower; null: learning_rate"),
      key.of<&OptimSettings::aligner_lr>().within(0, 1000).says(
          "learning rate of the aligner; null: learning_rate"),
      key.of<&OptimSettings::weight_decay>().within(0, 1000).says(
          "not applied to norm weights and biases (ms-swift)"),
      adam.of<&AdamWSettings::beta1>().at_least(0).below(1).says("AdamW (transformers)"),
      adam.of<&AdamWSettings::beta2>().at_least(0).below(1).says("AdamW (ms-swift)"),
      adam.of<&AdamWSettings::epsilon>().within(1e-30, 1).says("AdamW (transformers)"),
      key.of<&OptimSettings::max_grad_norm>().at_least(0).says(
          "global-norm clipping; 0: none (transformers)"),
      key.of<&OptimSettings::zero_stage>().within(0, 3).says(
          "several ranks: 1 and 2 shard optimizer state and gradients across ranks, 3 frozen "
          "weights too (stage 1 with an adapter; also read from `deepspeed`: zero1, zero2, "
          "…)"),
      key.of<&OptimSettings::exact_ranks>().says(
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
      key.of<&ScheduleSettings::warmup_ratio>().within(0, 1).says(
          "share of the steps used for warm-up (ms-swift)"),
      key.of<&ScheduleSettings::warmup_steps>().at_least(0).says(
          "overrides warmup_ratio when > 0 (transformers)"),
      key("lr_scheduler_type", &ScheduleSettings::type)
          .says("learning-rate schedule, as in transformers (ms-swift)"),
      kwargs.of<&ScheduleSettings::min_lr>().within(0, 1000).says(
          "final learning rate of the `…_min_lr` schedules; set this or min_lr_rate"),
      kwargs.of<&ScheduleSettings::min_lr_rate>().within(0, 1).says(
          "min_lr as a fraction of the learning rate"),
      kwargs.of<&ScheduleSettings::num_cycles>().above(0).up_to(1e6).says(
          "periods of the cosine; null: 0.5 (transformers)"),
      kwargs.of<&ScheduleSettings::warmup_lr_rate>().within(0, 1).says(
          "`cosine_warmup_with_min_lr`: first learning rate of the warm-up, as a fraction of "
          "the learning rate"),
  };
}

std::vector<KeySpec> run_keys() {
  const KeysOf key("training.", part<>);
  const KeysOf model("training.", part<&Settings::model>);
  const KeysOf batch("training.", part<&Settings::batches>);
  return {
      key.of<&Settings::seed>().at_least(0).says("seed of all random numbers (transformers)"),
      boolean_key("training.bf16").says("true: `model.torch_dtype: bfloat16`"),
      boolean_key("training.fp16")
          .refuses("on", "float16 overflows in training: use `bf16: true`")
          .says("only false"),
      model.of<&ModelSettings::gradient_checkpointing>().says(
          "recomputes activations in the backward pass to save memory; `selective` keeps the "
          "results of the language model's matrix products: faster, for more memory "
          "(ms-swift: true)"),
      batch("dataloader_drop_last", &BatchSettings::drop_last)
          .says("drops an incomplete last micro-batch of an epoch (transformers)"),
      key.of<&Settings::ddp_backend>().says(
          "several ranks: library that exchanges gradients and weights; `nccl` needs a GPU "
          "for each rank and a build with NCCL; `auto` takes it where both are there, else "
          "`gloo` (transformers)"),
      key.of<&Settings::ddp_bucket_cap_mb>()
          .within(1, 1 << 20)
          .says("several ranks: MiB of gradients sent at once, as soon as the backward pass has "
                "computed them; no effect on results (transformers)"),
      key.of<&Settings::ddp_timeout>().within(1, 1e8).says(
          "several ranks: seconds to wait for a rank that does not start or makes no "
          "progress (transformers)"),
  };
}

}  // namespace

std::vector<KeySpec> training_keys() {
  return join_keys({length_keys(), optimizer_keys(), schedule_keys(), run_keys()});
}

}  // namespace rematch
