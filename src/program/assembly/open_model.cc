#include <fmt/core.h>

#include <utility>

#include "engine/rollout/engine_factory.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "model/checkpoint/hf_dir.h"
#include "model/checkpoint/model_dir.h"
#include "model/families/family.h"
#include "model/patch_fit.h"
#include "model/text/chat_template.h"
#include "model/text/stop_ids.h"
#include "model/text/stored_prompt.h"
#include "program/assembly/load_model.h"
#include "program/assembly/open.h"

namespace rematch {
namespace {

/// Checks that tokenizer and model agree on the image token, and that the model has a row for each
/// id.
void check_tokenizer_fits(const Tokenizer& tokenizer, const std::string& directory) {
  const std::optional<TokenId> pad = tokenizer.token_id("<|image_pad|>");
  const ModelDescription model = describe_model(directory);
  std::string misfit;
  if (pad && *pad != model.image_token_id) {  // prompts report a missing one
    misfit = fmt::format("its <|image_pad|> is {}, image_token_id of config.json is {}", *pad,
                         model.image_token_id);
  } else if (tokenizer.num_ids() > model.text.vocab_size) {
    misfit = fmt::format("its largest id is {}, vocab_size of config.json is {}",
                         tokenizer.num_ids() - 1, model.text.vocab_size);
  }
  if (misfit.empty()) return;
  throw data_error({.error = "the tokenizer belongs to another model",
                    .where = directory + "/tokenizer.json",
                    .what = misfit,
                    .fix = "take tokenizer.json and config.json from the same checkpoint"});
}

/// Makes the prompt encoder, with the model's chat template.
/// @throws UserError for a template that cannot be read, or that fails for a prompt with one image
std::unique_ptr<const PromptEncoder> make_prompts(const Settings& settings, const ModelFiles& files,
                                                  Report& report) {
  auto chat_template =
      std::make_shared<const ChatTemplate>(ChatTemplate::load(settings.model.directory));
  report.warn_all(chat_template->warnings());
  check_tokenizer_fits(*files.tokenizer, settings.model.directory);
  const int merge_size = files.patches.merge_size;
  auto prompts = std::make_unique<PromptEncoder>(
      files.tokenizer, std::move(chat_template),
      PromptEncoder::Options{.texts = settings.prompt,
                             .built_in = answer_formats()
                                             .find(files.format_name)
                                             .built_in_prompt(settings.data.object_ordering),
                             .merge_size = merge_size});
  prompts->encode({GridThw{1, merge_size, merge_size}});  // else every image would be blamed
  return prompts;
}

/// Name of the answer format. Training uses the configured one or the default; other commands may
/// use the format of the checkpoint.
std::string choose_format(const Settings& settings, Use use, const Tokenizer& tokenizer,
                          Report& report) {
  const std::optional<std::string>& given = settings.data.answer_format;
  const std::string& directory = settings.model.directory;
  if (use != Use::kTrain) return checkpoint_format(given, directory, tokenizer);
  std::string name = given.value_or(kDefaultAnswerFormat);
  const std::optional<StoredPrompt> stored = read_stored_prompt(directory);
  if (stored && stored->answer_format != name) {
    report.warn(fmt::format(
        "{} was trained to answer in `{}`, and is now taught `{}` (custom.answer_format)",
        directory, stored->answer_format, name));
  }
  return name;
}

/// Warns when the prompt is not the one that the model was trained with.
void compare_prompts(const std::string& directory, const PromptEncoder& now, Report& report) {
  const std::optional<StoredPrompt> stored = read_stored_prompt(directory);
  if (stored && (stored->texts.system_prompt != now.system_prompt() ||
                 stored->texts.user_prompt != now.user_prompt()))
    report.warn(fmt::format(
        "template.system or custom.user_prompt is not that of {} ({}), which must learn it where "
        "records have no prompt",
        directory, kStoredPromptFile));
}

}  // namespace

std::optional<ModelFiles> open_model(const Settings& settings, Use use, Report& report) {
  const std::string& directory = settings.model.directory;
  if (!report.attempt([&] { require_model_dir(directory); })) return std::nullopt;
  ModelFiles files;
  report.attempt([&] { report.warn(spare_weights_warning(directory)); });
  const bool has_format = report.attempt([&] {
    files.tokenizer = Tokenizer::load(directory);
    files.format_name = choose_format(settings, use, *files.tokenizer, report);
    files.format = make_answer_format(files.format_name, files.tokenizer, directory);
  });
  if (files.tokenizer) report.attempt([&] { read_stop_ids(directory, *files.tokenizer); });
  const bool has_patches = report.attempt([&] {
    files.patches = PatchOptions::from_model_dir(directory, settings.images);
    check_patches_fit(files.patches, describe_model(directory).vision, directory);
  });
  if (use == Use::kTrain) report.attempt([&] { require_adapter_in_four_bits(settings); });
  const bool trains_adapter = settings.tuner.train_type == TrainType::kLora && use == Use::kTrain;
  if (trains_adapter && files.tokenizer)
    report.attempt([&] { check_adapter_targets(settings, *files.tokenizer); });
  report.attempt([&] {
    if (needs_backend(use, settings))
      check_backend_decodes(settings.backend, describe_model(directory).text,
                            is_in_four_bits(settings.model));
  });
  if (!has_format || !has_patches) return std::nullopt;
  if (!report.attempt([&] { files.prompts = make_prompts(settings, files, report); }))
    return std::nullopt;
  if (use == Use::kTrain)
    report.attempt([&] { compare_prompts(directory, *files.prompts, report); });
  return files;
}

}  // namespace rematch
