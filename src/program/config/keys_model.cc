// Keys of the top level, model, template, data, tuner and debug.
#include "model/families/family.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec> root_keys() {
  const KeysOf key("", part<&Settings::model>);
  return {key.of<&ModelSettings::global_max_length>()
              .within(1, 1 << 24)
              .says("most tokens in a segment and in a packed row")};
}

std::vector<KeySpec> model_section() {
  const KeysOf key("model.", part<&Settings::model>);
  const KeysOf bits("model.bnb_4bit_", part<&Settings::model, &ModelSettings::four_bit>);
  const KeysOf four("model.", part<&Settings::model, &ModelSettings::four_bit>);
  return {
      key("model", &ModelSettings::directory)
          .is_required()
          .says("Hugging Face directory: config, safetensors, tokenizer, preprocessor, chat "
                "template"),
      key("torch_dtype", &ModelSettings::dtype)
          .refuses("=float16", "float16 overflows in training: use `bfloat16`")
          .says("dtype of the weights; auto: bfloat16 on GPU, float32 on CPU"),
      key.of<&ModelSettings::load_in_4bit>().says(
          "quantises the model's Linear layers to 4 bits while it is loaded, as bitsandbytes "
          "does; for `tuner.train_type: lora` and for answers. A checkpoint that bitsandbytes "
          "quantised needs no key"),
      bits.of<&FourBitSettings::quant_type>().says(
          "the 16 values of `load_in_4bit` (transformers' own default is `fp4`)"),
      bits.of<&FourBitSettings::use_double_quant>().says(
          "`load_in_4bit`: 4.1 bits a weight instead of 4.5"),
      four("llm_int8_skip_modules", &FourBitSettings::skip_modules)
          .says(
              "`load_in_4bit`: modules, or components of module names such as `visual`, that stay "
              "in full precision; the head always does"),
      integer_key("model.max_model_len")
          .within(1, 1 << 24)
          .says("used as `global_max_length` if that is not set"),
  };
}

std::vector<KeySpec> template_section() {
  const std::string no_truncation =
      "samples are never truncated: a sample longer than `global_max_length` is an error; "
      "`delete` drops it";
  const KeysOf key("template.", part<&Settings::prompt>);
  const KeysOf data("template.", part<&Settings::data>);
  const KeysOf image("template.", part<&Settings::images>);
  return {
      text_key("template.template", families().front().model_type)
          .says("the model's family: `model_type` in its config.json"),
      key("system", &PromptSettings::system_prompt).says("replaces the built-in system prompt"),
      integer_key("template.max_length")
          .within(1, 1 << 24)
          .says("used as `global_max_length` if neither that nor `model.max_model_len` is set"),
      data.of<&DataSettings::truncation_strategy>()
          .warns("=right", no_truncation)
          .warns("=left", no_truncation)
          .says("samples longer than `global_max_length`, checked before step 1: `raise` lists "
                "them in an error, `delete` drops them"),
      image.of<&ImageSettings::image_resize>().says(
          "images that the model's image processor would resize: `processor` resizes them "
          "the same way, `refuse` reports an error"),
      image.of<&ImageSettings::image_backend>().says(
          "transformers image processor to reproduce bit for bit: `torchvision` (vLLM's "
          "too), or `pil`, its choice without torchvision"),
      image.of<&ImageSettings::max_pixels>()
          .within(1, 1 << 28)
          .says("largest image area in pixels; null: the image processor's"),
      image.of<&ImageSettings::min_pixels>()
          .within(1, 1 << 24)
          .says("smallest image area in pixels; null: the image processor's"),
  };
}

std::vector<KeySpec> data_section() {
  const KeysOf key("data.", part<&Settings::loader>);
  const KeysOf data("data.", part<&Settings::data>);
  const KeysOf augment("data.augment.", part<&Settings::augment>);
  return {
      data.of<&DataSettings::on_bad_sample>().says(
          "if a training image cannot be read, or a rollout makes its segment too long: "
          "save the state and stop, or skip the sample"),
      key("dataloader_num_workers", &LoaderSettings::num_workers)
          .within(0, 1024)
          .says("threads that decode images; 0: the training thread decodes; no effect on results"),
      key("dataloader_prefetch_factor", &LoaderSettings::prefetch_factor)
          .within(1, 1024)
          .says("batches that each worker decodes ahead"),
      augment.of<&AugmentSettings::hflip>().within(0, 1).says(
          "probability of mirroring a training image left to right"),
      augment.of<&AugmentSettings::hflip_words>().says(
          "mirror even if labels or prompts contain the words left or right"),
      augment.of<&AugmentSettings::vflip>().within(0, 1).says(
          "probability of mirroring a training image top to bottom (aerial and microscope "
          "pictures)"),
      augment.of<&AugmentSettings::vflip_words>().says(
          "mirror even if labels or prompts contain words such as top, lower or above"),
      augment.of<&AugmentSettings::rot90>().within(0, 1).says(
          "probability of turning a training image by 90, 180 or 270 degrees, each equally "
          "likely (aerial and microscope pictures)"),
      augment.of<&AugmentSettings::rot90_words>().says(
          "turn even if labels or prompts contain words such as left, right, top or lower"),
      augment.of<&AugmentSettings::crop>().within(0.05, 1).says(
          "smallest share of a training image's area that a random crop keeps; 1: no crop"),
      augment.of<&AugmentSettings::color>().within(0, 0.9).says(
          "largest random change of a training image's brightness, contrast and saturation, "
          "as a share; 0: none"),
  };
}

std::vector<KeySpec> tuner_section() {
  const KeysOf key("tuner.", part<&Settings::tuner>);
  const KeysOf freeze("tuner.freeze_", part<&Settings::tuner, &TunerSettings::freeze>);
  const KeysOf lora("tuner.", part<&Settings::tuner, &TunerSettings::lora>);
  const KeysOf targets("tuner.", part<&Settings::tuner, &TunerSettings::targets>);
  return {
      key.of<&TunerSettings::train_type>()
          .refuses(
              "=qlora",
              "use `lora` with `model.load_in_4bit: true`; `rematch plan CONFIG --gpu-memory GIB` "
              "shows what fits")
          .says("full fine-tuning or a LoRA adapter"),
      freeze.of<&FreezeSettings::llm>().says("freezes the language model"),
      freeze.of<&FreezeSettings::vit>().says(
          "freezes the vision tower without its aligner (ms-swift: true; here nothing is "
          "frozen by default)"),
      freeze.of<&FreezeSettings::aligner>().says(
          "freezes `merger` and `deepstack_merger_list` (ms-swift: true; here nothing is "
          "frozen by default)"),
      lora("lora_rank", &LoraSettings::rank).within(1, 65536).says("rank of an adapter (ms-swift)"),
      lora("lora_alpha", &LoraSettings::alpha)
          .above(0)
          .up_to(1e6)
          .says("the scale of an adapter is lora_alpha / lora_rank (ms-swift)"),
      lora("lora_dropout", &LoraSettings::dropout)
          .within(0, 1)
          .below(1)
          .says("dropout on the input of an adapter (ms-swift)"),
      text_key("tuner.lora_bias", "none").one_of({"none"}).says("only `none`"),
      lora.of<&LoraSettings::use_dora>().says("DoRA: weight-decomposed adapters"),
      targets.of<&AdapterTargetSettings::target_modules>().says(
          "`all-linear` or name suffixes of the modules that get an adapter"),
      targets.of<&AdapterTargetSettings::target_regex>().says(
          "regular expression for full module names; replaces target_modules"),
      targets.of<&AdapterTargetSettings::modules_to_save>().says(
          "modules trained in full and saved with the adapter"),
      targets.of<&AdapterTargetSettings::trainable_token_indices>().says(
          "tokens whose rows in embedding and head are trained: `coord_tokens` for all 1000, "
          "token ids, or token texts"),
  };
}

std::vector<KeySpec> debug_section() {
  return {
      boolean_key("debug.enabled", false)
          .says("the other `debug` keys, if set, replace the regular ones"),
      text_key("debug.output_dir").says("replaces `training.output_dir`"),
      integer_key("debug.train_sample_limit")
          .at_least(1)
          .says("replaces `custom.train_sample_limit`"),
      integer_key("debug.val_sample_limit").at_least(1).says("replaces `custom.val_sample_limit`"),
  };
}

}  // namespace

std::vector<KeySpec> model_keys() {
  return join_keys({root_keys(), model_section(), template_section(), data_section(),
                    tuner_section(), debug_section()});
}

}  // namespace rematch
