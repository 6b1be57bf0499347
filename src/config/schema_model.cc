// Keys of the root, model, template, data, tuner and debug.
#include "config/schema.h"
#include "model/families/family.h"

namespace rematch {

std::vector<KeySpec> model_keys() {
  const std::string no_truncation = "nothing is ever truncated here: a sample longer than `global_max_length` is an error";
  return {
      integer("global_max_length").at_least(1).says("cap in tokens of a segment and of a packed row"),
      text_key("model.model").is_required().says("Hugging Face directory: config, safetensors, tokenizer, preprocessor, chat template"),
      text_key("model.torch_dtype", "auto")
          .one_of({"auto", "bfloat16", "float32"})
          .refuses("=float16", "float16 overflows in training: use `bfloat16`")
          .says("weights' dtype; auto: bfloat16 on GPU, float32 on CPU"),
      integer("model.max_model_len").at_least(1).says("from `global_max_length`; stands for it when that is absent"),
      ignored("model.attn_impl", "attention is chosen by device and dtype"),
      text_key("template.template", families().front().model_type).says("the model's family, as `model_type` of its config.json names it"),
      text_key("template.system").says("replaces the built-in system prompt"),
      integer("template.max_length")
          .at_least(1)
          .says("from `global_max_length`; stands for it when that and `model.max_model_len` are absent"),
      text_key("template.truncation_strategy", "raise")
          .one_of({"raise", "right", "left", "delete"})
          .warns("=right", no_truncation)
          .warns("=left", no_truncation)
          .warns("=delete", no_truncation)
          .says("an oversize sample is an error, always"),
      ignored("template.max_pixels", "images are never resized in training"),
      ignored("template.min_pixels", "images are never resized in training"),
      integer("data.dataloader_num_workers", "2")
          .at_least(0)
          .says("image decode threads; 0 decodes in the training thread; changes no result"),
      integer("data.dataloader_prefetch_factor", "2").at_least(1).says("batches decoded ahead for each worker"),
      ignored("data.dataset", "data come from `custom.train_jsonl`"),
      ignored("data.val_dataset", "data come from `custom.val_jsonl`"),
      ignored("data.dataset_num_proc", "records are read by native threads"),
      ignored("data.dataloader_pin_memory", "loading is native threads"),
      ignored("data.dataloader_persistent_workers", "loading is native threads"),
      text_key("tuner.train_type", "full")
          .one_of({"full", "lora"})
          .needs("=lora", Capability::kAdapters)
          .says("full fine-tuning or an adapter"),
      boolean("tuner.freeze_llm", "false").says("freezes the language model"),
      boolean("tuner.freeze_vit", "false")
          .says("freezes the vision tower without its aligner (ms-swift: true; here nothing is frozen unasked)"),
      boolean("tuner.freeze_aligner", "false")
          .says("freezes `merger` and `deepstack_merger_list` (ms-swift: true; here nothing is frozen unasked)"),
      integer("tuner.lora_rank", "8").at_least(1).says("rank of an adapter (ms-swift's default)"),
      number("tuner.lora_alpha", "32").above(0).says("scale of an adapter is lora_alpha / lora_rank (ms-swift's default)"),
      number("tuner.lora_dropout", "0.05").within(0, 1).says("dropout in front of an adapter (ms-swift's default)"),
      text_key("tuner.lora_bias", "none").one_of({"none"}).says("only `none`"),
      boolean("tuner.use_dora", "false").says("weight-decomposed adapters"),
      string_list("tuner.target_modules", "[all-linear]").says("`all-linear` or name suffixes of the modules that get an adapter"),
      text_key("tuner.target_regex").says("instead of target_modules: a full match of the module's name"),
      string_list("tuner.modules_to_save", "[]").says("modules trained in full and saved beside the adapter"),
      ignored("tuner.use_swift_lora", "adapters always have PEFT's layout"),
      boolean("debug.enabled", "false").says("the other `debug` values that are given replace the ordinary ones"),
      text_key("debug.output_dir").says("replaces `training.output_dir`"),
      integer("debug.train_sample_limit").at_least(1).says("replaces `custom.train_sample_limit`"),
      integer("debug.val_sample_limit").at_least(1).says("replaces `custom.val_sample_limit`"),
  };
}

}  // namespace rematch
