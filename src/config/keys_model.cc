// Keys of the root, model, template, data, tuner and debug.
#include "config/keys.h"
#include "model/families/family.h"

namespace rematch {
namespace {

std::vector<KeySpec> root_keys() {
  const KeysOf key("", part<&Settings::model>);
  return {key("global_max_length", &ModelSettings::global_max_length)
              .within(1, 1 << 24)
              .says("cap in tokens of a segment and of a packed row")};
}

std::vector<KeySpec> model_section() {
  const KeysOf key("model.", part<&Settings::model>);
  return {
      key("model", &ModelSettings::directory)
          .is_required()
          .says("Hugging Face directory: config, safetensors, tokenizer, preprocessor, chat "
                "template"),
      key("torch_dtype", &ModelSettings::dtype)
          .refuses("=float16", "float16 overflows in training: use `bfloat16`")
          .says("weights' dtype; auto: bfloat16 on GPU, float32 on CPU"),
      integer("model.max_model_len")
          .within(1, 1 << 24)
          .says("default: `global_max_length`; replaces it if that is absent"),
      ignored("model.attn_impl", "attention is chosen by device and dtype"),
  };
}

std::vector<KeySpec> template_section() {
  const std::string no_truncation =
      "samples are never truncated: one that is longer than `global_max_length` is an error; "
      "`delete` drops it";
  const KeysOf key("template.", part<&Settings::prompt>);
  const KeysOf data("template.", part<&Settings::data>);
  const KeysOf image("template.", part<&Settings::images>);
  return {
      text_key("template.template", families().front().model_type)
          .says("the model's family, as `model_type` of its config.json names it"),
      key("system", &PromptSettings::system_prompt).says("replaces the built-in system prompt"),
      integer("template.max_length")
          .within(1, 1 << 24)
          .says("default: `global_max_length`; replaces it if that and `model.max_model_len` are "
                "absent"),
      data("truncation_strategy", &DataSettings::truncation_strategy)
          .warns("=right", no_truncation)
          .warns("=left", no_truncation)
          .says("samples longer than `global_max_length`, found before step 1: `raise` lists them "
                "in an error, `delete` drops them"),
      image("image_resize", &ImageSettings::image_resize)
          .says("an image whose size the model's image processor changes: `processor` resizes it "
                "in the same way, `refuse` is an error"),
      image("image_backend", &ImageSettings::image_backend)
          .says("which of transformers' two image processors is followed to the bit: `torchvision` "
                "(vLLM's too) or `pil`, without "
                "torchvision"),
      image("max_pixels", &ImageSettings::max_pixels)
          .within(1, 1 << 28)
          .says("area of the largest image; null: the image processor's"),
      image("min_pixels", &ImageSettings::min_pixels)
          .within(1, 1 << 24)
          .says("area of the smallest image; null: the image processor's"),
  };
}

std::vector<KeySpec> data_section() {
  const KeysOf key("data.", part<&Settings::loader>);
  const KeysOf data("data.", part<&Settings::data>);
  const KeysOf augment("data.augment.", part<&Settings::augment>);
  return {
      data("on_bad_sample", &DataSettings::on_bad_sample)
          .says("a training image that cannot be read, or a segment that its rollout makes too "
                "long: stop with the state saved, or skip the "
                "sample"),
      key("dataloader_num_workers", &LoaderSettings::num_workers)
          .within(0, 1024)
          .says("image decode threads; 0 decodes in the training thread; changes no result"),
      key("dataloader_prefetch_factor", &LoaderSettings::prefetch_factor)
          .within(1, 1024)
          .says("batches decoded ahead for each worker"),
      ignored("data.dataset", "data comes from `custom.train_jsonl`"),
      ignored("data.val_dataset", "data comes from `custom.val_jsonl`"),
      ignored("data.dataset_num_proc", "records are read by native threads"),
      ignored("data.dataloader_pin_memory", "data is loaded by native threads"),
      ignored("data.dataloader_persistent_workers", "data is loaded by native threads"),
      augment("hflip", &AugmentSettings::hflip)
          .within(0, 1)
          .says("probability that a training picture is mirrored left to right"),
      augment("hflip_words", &AugmentSettings::hflip_words)
          .says("mirror although labels or prompts contain the words left or right"),
      augment("crop", &AugmentSettings::crop)
          .within(0.05, 1)
          .says("smallest share of a training picture's area that a random crop keeps; 1: no crop"),
      augment("color", &AugmentSettings::color)
          .within(0, 0.9)
          .says("brightness, contrast and saturation of a training picture change by up to this "
                "share; 0: not at all"),
  };
}

std::vector<KeySpec> tuner_section() {
  const KeysOf key("tuner.", part<&Settings::tuner>);
  const KeysOf freeze("tuner.freeze_", part<&Settings::tuner, &TunerSettings::freeze>);
  const KeysOf lora("tuner.", part<&Settings::tuner, &TunerSettings::lora>);
  const KeysOf targets("tuner.", part<&Settings::tuner, &TunerSettings::targets>);
  return {
      key("train_type", &TunerSettings::train_type)
          .refuses(
              "=qlora",
              "use `lora`: 4-bit weights are not built; `rematch plan CONFIG --gpu-memory GIB` "
              "says what fits")
          .says("full fine-tuning or an adapter"),
      freeze("llm", &FreezeSettings::llm).says("freezes the language model"),
      freeze("vit", &FreezeSettings::vit)
          .says("freezes the vision tower without its aligner (ms-swift: true; here nothing is "
                "frozen by default)"),
      freeze("aligner", &FreezeSettings::aligner)
          .says("freezes `merger` and `deepstack_merger_list` (ms-swift: true; here nothing is "
                "frozen by default)"),
      lora("lora_rank", &LoraSettings::rank)
          .within(1, 65536)
          .says("rank of an adapter (ms-swift's default)"),
      lora("lora_alpha", &LoraSettings::alpha)
          .above(0)
          .up_to(1e6)
          .says("the scale of an adapter is lora_alpha / lora_rank (ms-swift's default)"),
      lora("lora_dropout", &LoraSettings::dropout)
          .within(0, 1)
          .below(1)
          .says("dropout on the input of an adapter (ms-swift's default)"),
      text_key("tuner.lora_bias", "none").one_of({"none"}).says("only `none`"),
      lora("use_dora", &LoraSettings::use_dora).says("weight-decomposed adapters"),
      targets("target_modules", &AdapterTargetSettings::target_modules)
          .says("`all-linear` or name suffixes of the modules that get an adapter"),
      targets("target_regex", &AdapterTargetSettings::target_regex)
          .says("instead of target_modules: a full match of the module's name"),
      targets("modules_to_save", &AdapterTargetSettings::modules_to_save)
          .says("modules trained in full and saved with the adapter"),
      targets("trainable_token_indices", &AdapterTargetSettings::trainable_token_indices)
          .says("tokens whose rows of embedding and head are trained: `coord_tokens` for all 1000, "
                "ids, or texts of tokens"),
      ignored("tuner.use_swift_lora", "adapters always have PEFT's layout"),
  };
}

std::vector<KeySpec> debug_section() {
  return {
      boolean("debug.enabled", "false")
          .says("the other `debug` values, where set, replace the regular ones"),
      text_key("debug.output_dir").says("replaces `training.output_dir`"),
      integer("debug.train_sample_limit").at_least(1).says("replaces `custom.train_sample_limit`"),
      integer("debug.val_sample_limit").at_least(1).says("replaces `custom.val_sample_limit`"),
  };
}

}  // namespace

std::vector<KeySpec> model_keys() {
  return joined_keys({root_keys(), model_section(), template_section(), data_section(),
                      tuner_section(), debug_section()});
}

}  // namespace rematch
