#include "program/assembly/predictor.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/missing_path.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "engine/rollout/with_engine.h"
#include "learn/data/image_files.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "learn/resume/run_links.h"
#include "model/checkpoint/model_dir.h"
#include "model/checkpoint/peft.h"
#include "model/families/family.h"
#include "model/text/lossy.h"
#include "model/text/stored_prompt.h"
#include "model/vision/upright.h"
#include "program/assembly/adapter_setup.h"

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

/// Refuses a path that cannot be written to JSON.
/// @throws UserError (data)
void require_utf8(const std::string& path) {
  if (is_valid_utf8(path)) return;
  throw UserError(ErrorKind::kData, {.error = "an image cannot be named in the answers",
                                     .where = lossy_utf8(path),
                                     .what = "its name is not UTF-8 and cannot be written as JSON",
                                     .fix = "rename the file or its directory"});
}

/// Runs a step that reads an image.
/// @return its problem; nullopt on success
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
/// @param prompt_dir  the checkpoint with the stored prompt: adapter or model
Settings equivalent_settings(const PredictorOptions& options, const std::string& base_dir,
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

/// The job of a model with its adapter, if there is one.
Job open_prediction(const PredictorOptions& options, Terminal& terminal) {
  std::string base_dir = find_model(options.model_dir).path, adapter_dir;
  if (!options.adapter_dir.empty()) adapter_dir = find_model(options.adapter_dir).path;
  const bool is_named_by_adapter = adapter_dir.empty() && is_adapter_dir(base_dir);
  if (is_named_by_adapter) {
    adapter_dir = base_dir;
    base_dir = named_base_model(read_peft_adapter(adapter_dir), adapter_dir);
  }
  require_model_dir(base_dir);  // first, before warnings about missing files
  describe_model(base_dir);
  const bool has_adapter = !adapter_dir.empty();
  JobSource source{.checkpoint = has_adapter ? adapter_dir : base_dir,
                   .is_adapter = has_adapter,
                   .force_base = options.force_base};
  Settings& settings = source.config.settings;
  settings = equivalent_settings(options, base_dir, source.checkpoint, terminal);
  if (has_adapter) {
    if (const std::string text = adopt_image_area(settings, adapter_dir); !text.empty())
      terminal.warn(text);
  }
  return open_job(std::move(source), Use::kAnswerImages,
                  {.device = options.device, .terminal = terminal});
}

}  // namespace

Predictor::Predictor(const PredictorOptions& options, Terminal& terminal)
    : job_(open_prediction(options, terminal)),
      engine_(start_engine(job_, load_model(job_), job_.settings().generation)),
      calibration_(ScoreCalibration::read(job_.source.checkpoint)) {}

Prompt Predictor::make_image_prompt(const Prediction& image) const {
  const Sample sample{.sample_id = num_answered_,
                      .image_paths = {image.path},
                      .width_px = image.width_px,
                      .height_px = image.height_px,
                      .objects = {},
                      .where = image.path};
  return make_prompt(sample, 0, *job_.files.prompts, job_.files.patches);
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& paths) {
  std::vector<Prediction> predictions;
  std::vector<Prompt> prompts(paths.size());
  std::vector<ImageRef> images;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& prediction = predictions.emplace_back(Prediction{.path = paths[i]});
    prediction.unreadable = image_problem([&] {
      require_utf8(prediction.path);
      const ImageSize size = read_stored_image(prediction.path).upright_size();
      prediction.width_px = size.width_px;
      prediction.height_px = size.height_px;
      prompts[i] = make_image_prompt(prediction);
      ++num_answered_;
    });
    images.insert(images.end(), prompts[i].images.begin(), prompts[i].images.end());
  }
  job_.pixels->prefetch(images);
  std::vector<Prompt> readable;
  std::vector<Prediction*> answered;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& prediction = predictions[i];
    // Decode first: a damaged image in the engine would end all answers.
    if (!prediction.unreadable)
      prediction.unreadable = image_problem([&] { job_.pixels->get(prompts[i].images.front()); });
    if (prediction.unreadable) continue;
    readable.push_back(std::move(prompts[i]));
    answered.push_back(&prediction);
  }
  if (!readable.empty()) answer(std::move(readable), answered);
  return predictions;
}

void Predictor::answer(std::vector<Prompt> prompts, const std::vector<Prediction*>& predictions) {
  std::vector<ScoredRollout> rollouts;
  for (Prompt& prompt : prompts) rollouts.push_back({.prompt = std::move(prompt)});
  MetricsBag unused;
  with_engine(*engine_.engine, nullptr, kCurrentWeights,
              [&] { roll_out(*engine_.engine, rollouts, unused); });
  for (size_t i = 0; i < rollouts.size(); ++i) {
    ScoredRollout& rollout = rollouts[i];
    parse_rollout(rollout, *job_.files.format, engine_.stop_ids);
    Prediction& prediction = *predictions[i];
    prediction.objects = to_scene(rollout.parsed.objects);
    prediction.raw_scores = std::move(rollout.scores);
    if (calibration_) prediction.scores = (*calibration_)(prediction.raw_scores);
    prediction.status = rollout.parsed.status;
    prediction.dropped_invalid = rollout.parsed.dropped_invalid;
    prediction.text = job_.files.tokenizer->decode_bytes(rollout.rollout.response_token_ids);
  }
}

namespace {

/// @throws UserError (configuration) for an address and for a file of records
void refuse_other_input(const std::string& path) {
  if (path.find("://") != path.npos)
    throw UserError(ErrorKind::kConfig, {.error = "an address is no image: nothing is fetched",
                                         .where = path,
                                         .what = "only files and directories are read",
                                         .fix = "download it first: curl -O " + shell_word(path)});
  if (path.ends_with(".jsonl"))
    throw UserError(
        ErrorKind::kConfig,
        {.error = "this is a file of records, not an image",
         .where = path,
         .what = "it ends in .jsonl",
         .fix = fmt::format("score a model on them: `rematch eval MODEL {}`; or give the images",
                            shell_word(path))});
}

}  // namespace

std::vector<std::string> list_images(const std::vector<std::string>& paths) {
  std::vector<std::string> images;
  for (const std::string& path : paths) {
    refuse_other_input(path);
    if (is_missing(path)) {
      throw missing_path("image", path, "give image files or directories of images");
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
