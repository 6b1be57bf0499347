// Keys of `custom` without the stage-2 section.
#include "learn/estep/answer/answer_format.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec> data_keys() {
  const KeysOf data("custom.", part<&Settings::data>);
  const KeysOf prompt("custom.", part<&Settings::prompt>);
  const KeysOf absent("custom.absent_classes.", part<&Settings::augment>);
  return {
      data("train_jsonl", &DataSettings::train_files,
           "training records: a path, a list of paths, or a list of `{path, weight}`; an epoch "
           "uses weight × records of each file")
          .is_required(),
      data.of<&DataSettings::val_jsonl>("validation records"),
      data.of<&DataSettings::train_sample_limit>(
              "uses the first N training records of each file; null: all")
          .at_least(1),
      data.of<&DataSettings::val_sample_limit>("uses the first N validation records; null: all")
          .at_least(1),
      data.of<&DataSettings::object_ordering>(
          "order of the objects: by (min y, min x), shuffled in each epoch, or that in which "
          "the starting checkpoint answers up to 300 training pictures"),
      data.of<&DataSettings::coord_input_noise>(
              "standard deviation, in bins, of noise on the input coordinates when training "
              "teaches the full ground truth")
          .within(0, 1000),
      absent("share", &AugmentSettings::absent_share,
             "share of the training records with a list of classes in their `prompt` that get "
             "names of other classes of the training data into it, drawn again in each epoch; "
             "the whole list is shuffled, the truth stays; 0: off")
          .within(0, 1),
      absent("most", &AugmentSettings::absent_most,
             "most names for a prompt; their number is drawn from 1 to this")
          .within(1, 1000),
      data.of<&DataSettings::answer_format>(
              "format of answers: " + answer_formats().meanings() +
              "; null: `coord_tokens` in training, the checkpoint's format in other commands")
          .one_of(answer_formats().names()),
      prompt.of<&PromptSettings::user_prompt>(
          "text, or a path that ends in `.txt`; null: the built-in prompt"),
      text_key("custom.emit_norm", "none")
          .one_of({"none"})
          .says("only `none`: coordinates are bins already"),
      text_key("custom.json_format", "standard").one_of({"standard"}).says("only `standard`"),
      boolean_key("custom.coord_tokens.enabled", true)
          .refuses("off",
                   "remove this key and set `custom.answer_format` to a format that writes digits")
          .says("only true; `custom.answer_format` chooses the format of coordinates"),
  };
}

std::vector<KeySpec> other_keys() {
  const KeysOf key("custom.", part<>);
  return {
      key("trainer_variant", &Settings::variant,
          "`rollout_matching_sft` is stage 2; null or `sft` is stage 1")
          .null_by_default()
          .refuses("=gkd_monitor", "it is not part of this program: remove it, or set it to null"),
      boolean_key("custom.val_sample_with_replacement")
          .refuses("on",
                   "validation reads every record once: set it to false, and select a subset with "
                   "`custom.val_sample_limit`")
          .warns("=false", "ignored; validation always reads every record once")
          .says("only false"),
  };
}

}  // namespace

std::vector<KeySpec> custom_keys() {
  return join_keys({data_keys(), coord_loss_keys(), other_keys()});
}

}  // namespace rematch
