#include "assembly/predictor.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "assembly/adapter_setup.h"
#include "text/stored_prompt.h"
#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "base/text.h"
#include "checkpoint/model_dir.h"
#include "checkpoint/peft.h"
#include "estep/answer/checkpoint_format.h"
#include "estep/answer/object_score.h"
#include "import/image_files.h"
#include "model/adapter.h"
#include "resume/run_links.h"
#include "rollout/generation_scope.h"
#include "text/lossy.h"
#include "text/stop_ids.h"
#include "vision/upright.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool leads_to_directory(const fs::path& path) {
  std::error_code error;  // e.g. a link that leads to itself
  return fs::is_directory(path, error);
}

bool is_missing(const std::string& path) {
  std::error_code error;  // a broken link counts as an unreadable image
  return fs::symlink_status(path, error).type() == fs::file_type::not_found;
}

/// Refuses a path that cannot be written to JSON. @throws UserError (data)
void require_utf8(const std::string& path) {
  if (is_valid_utf8(path)) return;
  throw UserError(ErrorKind::kData, {.error = "the image's name is not UTF-8",
                                     .where = lossy_utf8(path),
                                     .what = "its answer could not name it",
                                     .fix = "rename the file or its directory"});
}

/// Runs a step that reads an image. @return its problem; nullopt on success
std::optional<Problem> image_problem(const std::function<void()>& step) {
  try {
    step();
    return std::nullopt;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    return error.problems().front();
  }
}

/// The settings of an equivalent configuration.
Settings predictor_settings(const PredictorOptions& options, const std::string& base_dir,
                            const std::string& prompt_dir, Terminal& terminal) {
  Settings settings;
  settings.variant = TrainerVariant::kRolloutMatching;
  settings.model.directory = base_dir;
  settings.backend = options.backend;
  std::optional<StoredPrompt> stored = read_stored_prompt(prompt_dir);
  if (!stored && !(options.texts.system_prompt && options.texts.user_prompt)) {
    terminal.warn(
        fmt::format("{} has no {}: asked with the built-in prompt, which may not be the one it was "
                    "trained with (--system, --user)",
                    prompt_dir, kStoredPromptFile));
  }
  if (stored) {
    check_stored_format(*stored, prompt_dir);
    settings.data.answer_format = stored->answer_format;
    settings.images.image_backend = stored->image_backend;
  }
  if (!options.answer_format.empty()) settings.data.answer_format = options.answer_format;
  settings.prompt = stored ? stored->texts : PromptSettings{};
  if (options.texts.system_prompt) settings.prompt.system_prompt = options.texts.system_prompt;
  if (options.texts.user_prompt) settings.prompt.user_prompt = options.texts.user_prompt;
  settings.generation.max_new_tokens = options.max_new_tokens > 0 ? options.max_new_tokens
                                       : stored                   ? stored->max_new_tokens
                                                                  : 1024;
  return settings;
}

}  // namespace

Predictor::Predictor(const PredictorOptions& options, Terminal& terminal) {
  std::string base_dir = find_model(options.model_dir).path, adapter_dir;
  if (!options.adapter_dir.empty()) adapter_dir = find_model(options.adapter_dir).path;
  if (adapter_dir.empty() && is_adapter_dir(base_dir)) adapter_dir = base_dir;
  std::optional<PeftAdapter> adapter;
  if (!adapter_dir.empty()) adapter = read_peft_adapter(adapter_dir);
  if (adapter_dir == base_dir && adapter) base_dir = named_base_model(*adapter, adapter_dir);
  require_model_dir(base_dir);  // first, before warnings about missing files
  settings_ = predictor_settings(options, base_dir, adapter ? adapter_dir : base_dir, terminal);
  if (adapter) adopt_image_area(settings_, adapter_dir);
  session_ = std::make_unique<Session>(settings_, options.device,
                                       SessionNeeds{.upright_images = true, .rollouts = true},
                                       alone(), terminal);
  if (adapter) Adapter::load(*session_->model, *adapter, adapter_dir);
  rollouts_ = make_rollouts(*session_);
  stop_ids_ = read_stop_ids(base_dir, *session_->tokenizer);
}

Predictor::~Predictor() = default;

Prompt Predictor::image_prompt(const Prediction& image, int64_t index) const {
  const Sample sample{.sample_id = index,
                      .image_paths = {image.path},
                      .width_px = image.width_px,
                      .height_px = image.height_px,
                      .objects = {},
                      .where = image.path};
  return make_prompt(sample, 0, *session_->prompts, session_->patches);
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& paths) {
  std::vector<Prediction> predictions;
  std::vector<Prompt> prompts(paths.size());
  std::vector<ImageRef> images;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& one = predictions.emplace_back(Prediction{.path = paths[i]});
    one.unreadable = image_problem([&] {
      require_utf8(one.path);
      const ImageSize size = read_stored_image(one.path).upright_size();
      one.width_px = size.width_px;
      one.height_px = size.height_px;
      prompts[i] = image_prompt(one, num_answered_++);
    });
    images.insert(images.end(), prompts[i].images.begin(), prompts[i].images.end());
  }
  session_->pixels->prefetch(images);
  std::vector<Prompt> readable;
  std::vector<Prediction*> answered;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& one = predictions[i];
    // Decode first: a damaged image in the engine would end all answers.
    if (!one.unreadable)
      one.unreadable = image_problem([&] { session_->pixels->get(prompts[i].images.front()); });
    if (one.unreadable) continue;
    readable.push_back(std::move(prompts[i]));
    answered.push_back(&one);
  }
  if (!readable.empty()) answer(readable, answered);
  return predictions;
}

void Predictor::answer(const std::vector<Prompt>& prompts,
                       const std::vector<Prediction*>& predictions) {
  GenerationScope scope(*rollouts_.engine, nullptr, kCurrentWeights);
  const std::vector<Rollout> rollouts = rollouts_.engine->generate(prompts, {});
  scope.finish();
  for (size_t i = 0; i < prompts.size(); ++i) {
    const ParsedRollout parsed =
        session_->format->parse(rollouts[i].response_token_ids, stop_ids_, prompts[i]);
    Prediction& one = *predictions[i];
    one.objects = to_scene(parsed.objects);
    one.scores = object_scores(parsed.objects, rollouts[i].token_logprobs);
    one.status = parsed.status;
    one.dropped_invalid = parsed.dropped_invalid;
    one.text = session_->tokenizer->decode_bytes(rollouts[i].response_token_ids);
  }
}

std::vector<std::string> list_images(const std::vector<std::string>& paths) {
  std::vector<std::string> images;
  for (const std::string& path : paths) {
    if (is_missing(path)) {
      throw UserError(ErrorKind::kEnvironment,
                      {.error = "the image does not exist",
                       .where = path,
                       .what = "neither a file nor a directory",
                       .fix = "give image files or directories of images"});
    }
    if (!leads_to_directory(path)) {
      images.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (is_readable_image_name(entry.path()) && !leads_to_directory(entry.path()))
        found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    images.insert(images.end(), found.begin(), found.end());
  }
  if (images.empty()) {
    throw UserError(ErrorKind::kData, {.error = "there are no images",
                                       .where = paths.empty() ? "rematch predict" : paths.front(),
                                       .what = "no file ends in .jpg, .jpeg, .png or .webp",
                                       .fix = "give image files or directories of images, after "
                                              "the model: rematch predict MODEL IMAGE"});
  }
  return images;
}

}  // namespace rematch
