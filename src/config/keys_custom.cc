// Keys of custom (without the stage-2 section) and the sections of other programs.
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
              "takes weight × records of each file"),
      data("val_jsonl", &DataSettings::val_jsonl).says("validation records"),
      data("train_sample_limit", &DataSettings::train_sample_limit)
          .at_least(1)
          .says("first N training records of each file; null: all"),
      data("val_sample_limit", &DataSettings::val_sample_limit)
          .at_least(1)
          .says("first N validation records; null: all"),
      data("object_ordering", &DataSettings::object_ordering)
          .says("objects by (min y, min x), or shuffled per epoch"),
      data("coord_input_noise", &DataSettings::coord_input_noise)
          .within(0, 1000)
          .says("standard deviation in bins of the noise on coordinates shown where training "
                "teaches the full truth"),
      data("answer_format", &DataSettings::answer_format)
          .one_of(answer_formats().names())
          .says("how answers are written: " + answer_formats().meanings() +
                "; null: `coord_tokens`, in commands that do not train the checkpoint's own"),
      prompt("user_prompt", &PromptSettings::user_prompt)
          .says("text, or a path ending in `.txt`; null: built in"),
      text_key("custom.emit_norm", "none")
          .one_of({"none"})
          .says("only `none`: coordinates are bins already"),
      text_key("custom.json_format", "standard").one_of({"standard"}).says("only `standard`"),
      boolean("custom.coord_tokens.enabled", "true")
          .refuses("off",
                   "remove this key and set `custom.answer_format` to a format that writes digits")
          .says("only true: `custom.answer_format` chooses how coordinates are written"),
      ignored("custom.coord_tokens.skip_bbox_norm", "coordinates are bins already"),
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
      refused("custom.visual_kd", not_ours),
      refused("custom.fusion_config", not_ours),
      refused("custom.augmentation", "remove it; `data.augment` has `hflip`, `crop` and `color`"),
      refused("custom.augmentation_curriculum", not_ours),
      refused("custom.bypass_prob", not_ours),
      refused("custom.use_summary", not_ours),
      refused("custom.coord_offset",
              "the coordinate-offset adapter is not built: set `enabled: false`"),
      ignored("custom.dump_conversation_text",
              "use `rematch rollout`, which writes the ids of each prompt"),
      ignored("custom.dump_conversation_path",
              "use `rematch rollout`, which writes the ids of each prompt"),
      ignored("custom.instability_monitor", always_logged),
      ignored("custom.log_file", always_logged),
      ignored("custom.token_type_metrics", always_logged),
      boolean("custom.val_sample_with_replacement")
          .refuses("on",
                   "validation reads every record once: set it to false, and select a subset with "
                   "`custom.val_sample_limit`")
          .warns("=false", "ignored; validation always reads every record once")
          .says("only false"),
      refused("custom.hard_sample_mining",
              "removed; to train on selected records, put them into `custom.train_jsonl`"),
      refused("custom.coord_loss", "removed; its successor is `custom.coord_soft_ce_w1`"),
      refused(
          "custom.sample_limit",
          "removed; its successors are `custom.train_sample_limit` and `custom.val_sample_limit`"),
      refused("custom.summary_ratio", "removed; there is no summary mode"),
      refused("custom.images_per_user_turn", "removed; a record holds one image"),
      refused("custom.coord_expectation_metrics",
              "removed; its successor is `custom.coord_soft_ce_w1`, whose losses are logged"),
      refused("custom.rollout_matching", "move it to `custom.extra.rollout_matching`"),
      ignored("custom.extra.rollout_backend_bench", "benches are separate programs"),
  };
}

}  // namespace

std::vector<KeySpec> custom_keys() {
  return joined_keys({data_keys(), coord_loss_keys(), other_keys()});
}

std::vector<KeySpec> foreign_keys() {
  return {
      ignored("deepspeed", "only its ZeRO stage is read, as `training.zero_stage`"),
      refused(
          "quantization",
          "training is in bfloat16 or float32: remove the section and choose `model.torch_dtype`"),
      refused("rlhf",
              "this trainer is `custom.trainer_variant: rollout_matching_sft` (stage 2) or "
              "supervised: remove the section"),
      refused("prompts", "use `template.system` and `custom.user_prompt`"),
  };
}

}  // namespace rematch
