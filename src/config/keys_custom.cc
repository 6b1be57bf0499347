// Keys of `custom` without the stage-2 section, and sections of other programs.
#include "config/keys.h"
#include "estep/answer/answer_format.h"

namespace rematch {
namespace {

std::vector<KeySpec> data_keys() {
  const KeysOf data("custom.", part<&Settings::data>);
  const KeysOf prompt("custom.", part<&Settings::prompt>);
  return {
      data("train_jsonl", &DataSettings::train_files)
          .is_required()
          .says(
              "training records: a path, a list of paths, or a list of `{path, weight}`; an epoch "
              "uses weight × records of each file"),
      data("val_jsonl", &DataSettings::val_jsonl).says("validation records"),
      data("train_sample_limit", &DataSettings::train_sample_limit)
          .at_least(1)
          .says("uses the first N training records of each file; null: all"),
      data("val_sample_limit", &DataSettings::val_sample_limit)
          .at_least(1)
          .says("uses the first N validation records; null: all"),
      data("object_ordering", &DataSettings::object_ordering)
          .says("order of the objects: by (min y, min x), or shuffled in each epoch"),
      data("coord_input_noise", &DataSettings::coord_input_noise)
          .within(0, 1000)
          .says("standard deviation, in bins, of noise on the input coordinates when training "
                "teaches the full ground truth"),
      data("answer_format", &DataSettings::answer_format)
          .one_of(answer_formats().names())
          .says("format of answers: " + answer_formats().meanings() +
                "; null: `coord_tokens` in training, the checkpoint's format in other commands"),
      prompt("user_prompt", &PromptSettings::user_prompt)
          .says("text, or a path that ends in `.txt`; null: the built-in prompt"),
      text_key("custom.emit_norm", "none")
          .one_of({"none"})
          .says("only `none`: coordinates are bins already"),
      text_key("custom.json_format", "standard").one_of({"standard"}).says("only `standard`"),
      boolean_key("custom.coord_tokens.enabled", "true")
          .refuses("off",
                   "remove this key and set `custom.answer_format` to a format that writes digits")
          .says("only true; `custom.answer_format` chooses the format of coordinates"),
      ignored_key("custom.coord_tokens.skip_bbox_norm", "coordinates are bins already"),
  };
}

std::vector<KeySpec> other_keys() {
  const std::string always_logged =
      "logs are always written, and a non-finite loss always stops the run";
  const std::string not_ours =
      "it is not part of this program: remove it, or set it to null or false";
  const KeysOf key("custom.", part<>);
  return {
      key("trainer_variant", &Settings::variant)
          .null_by_default()
          .refuses("=gkd_monitor", not_ours)
          .says("`rollout_matching_sft` is stage 2; null or `sft` is stage 1"),
      refused_key("custom.visual_kd", not_ours),
      refused_key("custom.fusion_config", not_ours),
      refused_key("custom.augmentation",
                  "remove it; `data.augment` has `hflip`, `crop` and `color`"),
      refused_key("custom.augmentation_curriculum", not_ours),
      refused_key("custom.bypass_prob", not_ours),
      refused_key("custom.use_summary", not_ours),
      refused_key("custom.coord_offset",
                  "the coordinate-offset adapter is not supported: set `enabled: false`"),
      ignored_key("custom.dump_conversation_text",
                  "use `rematch rollout`, which writes the ids of each prompt"),
      ignored_key("custom.dump_conversation_path",
                  "use `rematch rollout`, which writes the ids of each prompt"),
      ignored_key("custom.instability_monitor", always_logged),
      ignored_key("custom.log_file", always_logged),
      ignored_key("custom.token_type_metrics", always_logged),
      boolean_key("custom.val_sample_with_replacement")
          .refuses("on",
                   "validation reads every record once: set it to false, and select a subset with "
                   "`custom.val_sample_limit`")
          .warns("=false", "ignored; validation always reads every record once")
          .says("only false"),
      refused_key(
          "custom.hard_sample_mining",
          "removed; to train on selected records, put only these into `custom.train_jsonl`"),
      refused_key("custom.coord_loss", "removed; its successor is `custom.coord_soft_ce_w1`"),
      refused_key(
          "custom.sample_limit",
          "removed; its successors are `custom.train_sample_limit` and `custom.val_sample_limit`"),
      refused_key("custom.summary_ratio", "removed; there is no summary mode"),
      refused_key("custom.images_per_user_turn", "removed; a record holds one image"),
      refused_key("custom.coord_expectation_metrics",
                  "removed; its successor is `custom.coord_soft_ce_w1`, whose losses are logged"),
      refused_key("custom.rollout_matching", "move it to `custom.extra.rollout_matching`"),
      ignored_key("custom.extra.rollout_backend_bench", "benchmarks are separate programs"),
  };
}

}  // namespace

std::vector<KeySpec> custom_keys() {
  return join_keys({data_keys(), coord_loss_keys(), other_keys()});
}

std::vector<KeySpec> foreign_keys() {
  return {
      ignored_key("deepspeed", "only its ZeRO stage is read, as `training.zero_stage`"),
      refused_key(
          "quantization",
          "weights are bfloat16 or float32: remove the section and choose `model.torch_dtype`"),
      refused_key("rlhf",
                  "RLHF is not supported: remove the section; `custom.trainer_variant: "
                  "rollout_matching_sft` selects stage 2"),
      refused_key("prompts", "use `template.system` and `custom.user_prompt`"),
  };
}

}  // namespace rematch
