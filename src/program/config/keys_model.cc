// Keys of the top level, model, template, data, tuner and debug.
#include "model/families/family.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec> root_keys() {
  const KeysOf key("", part<&Settings::model>);
  return {key.of<&ModelSettings::global_max_length>("most tokens in a segment and in a packed row")
              .within(1, 1 << 24)};
}

std::vector<KeySpec> model_section() {
  const KeysOf key("model.", part<&Settings::model>);
  const KeysOf bits("model.bnb_4bit_", part<&Settings::model, &ModelSettings::four_bit>);
  const KeysOf four("model.", part<&Settings::model, &ModelSettings::four_bit>);
  return {
      key("model", &ModelSettings::directory,
          "Hugging Face directory: config, safetensors, tokenizer, preprocessor, chat "
          "template")
          .is_required(),
      key("torch_dtype", &ModelSettings::dtype,
          "dtype of the weights; auto: bfloat16 on GPU, float32 on CPU")
          .refuses("=float16", "float16 overflows in training: use `bfloat16`"),
      key.of<&ModelSettings::load_in_4bit>(
          "quantises the model's Linear layers to 4 bits while it is loaded, as bitsandbytes "
          "does; for `tuner.train_type: lora` and for answers. A checkpoint that bitsandbytes "
          "quantised needs no key"),
      bits.of<&FourBitSettings::quant_type>(
          "the 16 values of `load_in_4bit` (transformers' own default is `fp4`)"),
      bits.of<&FourBitSettings::use_double_quant>(
          "`load_in_4bit`: 4.1 bits a weight instead of 4.5"),
      four("llm_int8_skip_modules", &FourBitSettings::skip_modules,
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
      key("system", &PromptSettings::system_prompt,
          "the system prompt, written as `user_prompt` is"),
      integer_key("template.max_length")
          .within(1, 1 << 24)
          .says("used as `global_max_length` if neither that nor `model.max_model_len` is set"),
      data.of<&DataSettings::truncation_strategy>(
              "samples longer than `global_max_length`, checked before step 1: `raise` lists "
              "them in an error, `delete` drops them")
          .warns("=right", no_truncation)
          .warns("=left", no_truncation),
      image.of<&ImageSettings::image_resize>(
          "images that the model's image processor would resize: `processor` resizes them "
          "the same way, `refuse` reports an error"),
      image.of<&ImageSettings::image_backend>(
          "transformers image processor to reproduce bit for bit: `torchvision` (vLLM's "
          "too), or `pil`, its choice without torchvision"),
      image
          .of<&ImageSettings::max_pixels>(
              "largest image area in pixels; null: the image processor's")
          .within(1, 1 << 28),
      image
          .of<&ImageSettings::min_pixels>(
              "smallest image area in pixels; null: the image processor's")
          .within(1, 1 << 24),
  };
}

std::vector<KeySpec> data_section() {
  const KeysOf key("data.", part<&Settings::loader>);
  const KeysOf data("data.", part<&Settings::data>);
  const KeysOf augment("data.augment.", part<&Settings::augment>);
  return {
      data.of<&DataSettings::on_bad_sample>(
          "if a training image cannot be read, or a rollout makes its segment too long: "
          "save the state and stop, or skip the sample"),
      key("dataloader_num_workers", &LoaderSettings::num_workers,
          "threads that decode images; 0: the training thread decodes; no effect on results")
          .within(0, 1024),
      key("dataloader_prefetch_factor", &LoaderSettings::prefetch_factor,
          "batches that each worker decodes ahead")
          .within(1, 1024),
      augment.of<&AugmentSettings::hflip>("probability of mirroring a training image left to right")
          .within(0, 1),
      augment.of<&AugmentSettings::hflip_words>(
          "mirror even if labels or prompts contain the words left or right"),
      augment
          .of<&AugmentSettings::vflip>(
              "probability of mirroring a training image top to bottom (aerial and microscope "
              "pictures)")
          .within(0, 1),
      augment.of<&AugmentSettings::vflip_words>(
          "mirror even if labels or prompts contain words such as top, lower or above"),
      augment
          .of<&AugmentSettings::rot90>(
              "probability of turning a training image by 90, 180 or 270 degrees, each equally "
              "likely (aerial and microscope pictures)")
          .within(0, 1),
      augment.of<&AugmentSettings::rot90_words>(
          "turn even if labels or prompts contain words such as left, right, top or lower"),
      augment
          .of<&AugmentSettings::crop>(
              "smallest share of a training image's area that a random crop keeps; 1: no crop")
          .within(0.05, 1),
      augment
          .of<&AugmentSettings::color>(
              "largest random change of a training image's brightness, contrast and saturation, "
              "as a share; 0: none")
          .within(0, 0.9),
  };
}

std::vector<KeySpec> tuner_section() {
  const KeysOf key("tuner.", part<&Settings::tuner>);
  const KeysOf freeze("tuner.freeze_", part<&Settings::tuner, &TunerSettings::freeze>);
  const KeysOf lora("tuner.", part<&Settings::tuner, &TunerSettings::lora>);
  const KeysOf targets("tuner.", part<&Settings::tuner, &TunerSettings::targets>);
  return {
      key.of<&TunerSettings::train_type>("full fine-tuning or a LoRA adapter")
          .refuses(
              "=qlora",
              "use `lora` with `model.load_in_4bit: true`; `rematch plan CONFIG --gpu-memory GIB` "
              "shows what fits"),
      freeze.of<&FreezeSettings::llm>("freezes the language model"),
      freeze.of<&FreezeSettings::vit>(
          "freezes the vision tower without its aligner (ms-swift: true; here nothing is "
          "frozen by default)"),
      freeze.of<&FreezeSettings::aligner>(
          "freezes `merger` and `deepstack_merger_list` (ms-swift: true; here nothing is "
          "frozen by default)"),
      lora("lora_rank", &LoraSettings::rank, "rank of an adapter (ms-swift)").within(1, 65536),
      lora("lora_alpha", &LoraSettings::alpha,
           "the scale of an adapter is lora_alpha / lora_rank (ms-swift)")
          .above(0)
          .up_to(1e6),
      lora("lora_dropout", &LoraSettings::dropout, "dropout on the input of an adapter (ms-swift)")
          .within(0, 1)
          .below(1),
      text_key("tuner.lora_bias", "none").one_of({"none"}).says("only `none`"),
      lora.of<&LoraSettings::use_dora>("DoRA: weight-decomposed adapters"),
      targets.of<&AdapterTargetSettings::target_modules>(
          "`all-linear` or name suffixes of the modules that get an adapter"),
      targets.of<&AdapterTargetSettings::target_regex>(
          "regular expression for full module names; replaces target_modules"),
      targets.of<&AdapterTargetSettings::modules_to_save>(
          "modules trained in full and saved with the adapter"),
      targets.of<&AdapterTargetSettings::trainable_token_indices>(
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
