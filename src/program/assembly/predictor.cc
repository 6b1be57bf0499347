#include "program/assembly/predictor.h"

#include <fmt/core.h>

#include <functional>
#include <utility>

#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "engine/rollout/with_engine.h"
#include "model/families/family.h"
#include "model/text/lossy.h"
#include "model/vision/image.h"

namespace rematch {
namespace {

/// Refuses a path that cannot be written to JSON.
/// @throws UserError (data)
void require_utf8(const std::string& path) {
  if (is_valid_utf8(path)) return;
  throw data_error({.error = "an image cannot be named in the answers",
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

/// The source, if it names a model; warns of a prompt that is not known.
JobSource checked(JobSource source, Terminal& terminal) {
  const Checkpoint& checkpoint = source.checkpoint;
  describe_model(checkpoint.base);  // first, before warnings about missing files
  const PromptSettings& texts = source.config.settings.prompt;
  if (!checkpoint.prompt && !(texts.system_prompt && texts.user_prompt)) {
    terminal.warn(
        fmt::format("{} has no {}: asked with the built-in prompt, which may not be the one it was "
                    "trained with (--system, --user)",
                    checkpoint.path, kStoredPromptFile));
  }
  return source;
}

/// Says when the scores were measured with other weights; none for weights of no checkpoint.
std::optional<ScoreCalibration> read_calibration(const JobSource& source, Terminal& terminal) {
  if (!has_own_weights(source)) return std::nullopt;
  const std::string& checkpoint = source.checkpoint.path;
  std::optional<ScoreCalibration> calibration = ScoreCalibration::read(checkpoint);
  const Settings& settings = source.config.settings;
  const std::optional<StoredPrompt>& trained = source.checkpoint.prompt;
  if (calibration && trained &&
      (trained->texts != settings.prompt || trained->answer_format != settings.data.answer_format))
    terminal.warn("the scores were measured with the prompt of training");
  if (calibration && !calibration->fits(checkpoint)) {
    terminal.warn(
        fmt::format("the scores of {} are those of other weights: they were measured at step {}, "
                    "and this is step {}; `rematch eval {}` measures them again",
                    checkpoint, *calibration->step(), *calibration->weights_step(checkpoint),
                    shell_word(checkpoint)));
  }
  return calibration;
}

}  // namespace

Predictor::Predictor(JobSource source, const Place& place)
    : asking_(checked(std::move(source), place.terminal), Use::kAnswerImages, place) {
  asking_.start();
  calibration_ = read_calibration(asking_.job().source, place.terminal);
}

Prompt Predictor::open_image(Prediction& image) {
  require_utf8(image.path);
  const auto [size, is_deep_grey, orientation] = read_image_facts(image.path);
  if (is_deep_grey) asking_.job().terminal.warn("16-bit grey images become white above level 255");
  image.width_px = size.width_px;
  image.height_px = size.height_px;
  const Sample sample{.sample_id = num_answered_,
                      .image_paths = {image.path},
                      .width_px = image.width_px,
                      .height_px = image.height_px,
                      .objects = {},
                      .where = image.path};
  const ModelFiles& files = asking_.job().files;
  Prompt prompt = make_prompt(sample, 0, files.prompts.get(), files.patches);
  ++num_answered_;
  return prompt;
}

std::vector<Prediction> Predictor::predict(const Strings& paths) {
  std::vector<Prediction> predictions;
  std::vector<Prompt> prompts(paths.size());
  std::vector<ImageRef> images;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& prediction = predictions.emplace_back(Prediction{.path = paths[i]});
    prediction.unreadable = image_problem([&] { prompts[i] = open_image(prediction); });
    images.insert(images.end(), prompts[i].images.begin(), prompts[i].images.end());
  }
  PixelStore& pixels = *asking_.job().pixels;
  pixels.prefetch(images);
  std::vector<ScoredRollout> readable;
  std::vector<Prediction*> answered;
  for (size_t i = 0; i < paths.size(); ++i) {
    Prediction& prediction = predictions[i];
    // Decode first: a damaged image in the engine would end all answers.
    if (!prediction.unreadable)
      prediction.unreadable = image_problem([&] { pixels.get(prompts[i].images.front()); });
    if (prediction.unreadable) continue;
    readable.push_back({.prompt = std::move(prompts[i])});
    answered.push_back(&prediction);
  }
  if (!readable.empty()) answer(std::move(readable), answered);
  return predictions;
}

void Predictor::answer(std::vector<ScoredRollout> rollouts,
                       const std::vector<Prediction*>& predictions) {
  const ModelFiles& files = asking_.job().files;
  const Engine& engine = *asking_.engine();
  MetricsBag unused;
  with_engine(*engine.engine, nullptr, kCurrentWeights,
              [&] { roll_out(*engine.engine, rollouts, unused); });
  for (size_t i = 0; i < rollouts.size(); ++i) {
    ScoredRollout& rollout = rollouts[i];
    parse_rollout(rollout, *files.format, engine.stop_ids);
    Prediction& prediction = *predictions[i];
    prediction.objects = to_scene(rollout.parsed.objects);
    prediction.raw_scores = std::move(rollout.scores);
    if (calibration_) prediction.scores = (*calibration_)(prediction.raw_scores);
    prediction.status = rollout.parsed.status;
    prediction.dropped_invalid = rollout.parsed.dropped_invalid;
    prediction.text = files.tokenizer->decode_bytes(rollout.rollout.response_token_ids);
  }
}

}  // namespace rematch
