#include "learn/estep/rollout_scorer.h"

#include <set>
#include <utility>

#include "learn/augment/augmentation.h"
#include "learn/estep/answer/object_score.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/match/observe_matching.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {

RolloutScorer::RolloutScorer(const Dataset& dataset, const AnswerFormat& format, Options options,
                             const PromptEncoder* prompts, PixelStore* pixels)
    : dataset_(dataset),
      format_(format),
      options_(std::move(options)),
      prompts_(prompts),
      pixels_(pixels),
      classes_(dataset.samples()) {}

Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder* prompts,
                   const PatchOptions& patches) {
  Prompt prompt{.sample_id = sample.sample_id,
                .epoch = epoch,
                .images = image_refs(sample, patches),
                .where = sample.where};
  std::vector<GridThw> grids;
  for (const ImageRef& image : prompt.images) grids.push_back(image.grid_thw);
  if (!grids.empty()) prompt.resized_px = resized_px(grids.front(), patches);
  if (prompts != nullptr) prompt.token_ids = prompts->encode(grids, sample.prompt);
  return prompt;
}

void parse_rollout(ScoredRollout& rollout, const AnswerFormat& format,
                   const std::vector<TokenId>& stop_ids) {
  rollout.parsed = format.parse(rollout.rollout.response_token_ids, stop_ids, rollout.prompt);
  rollout.scores = object_scores(rollout.parsed.objects, rollout.rollout.token_logprobs);
}

Sample RolloutScorer::shown_sample(int64_t index, int64_t epoch) const {
  return augment_sample(dataset_.samples()[index], options_.augment, options_.seed, epoch);
}

void RolloutScorer::prefetch(const std::vector<int64_t>& sample_indices, int64_t epoch) const {
  if (pixels_ == nullptr) return;
  std::vector<ImageRef> images;
  for (const int64_t index : sample_indices) {
    for (ImageRef& image : image_refs(shown_sample(index, epoch), options_.patches))
      images.push_back(std::move(image));
  }
  pixels_->prefetch(images);
}

std::vector<ScoredRollout> RolloutScorer::prepare(const std::vector<int64_t>& sample_indices,
                                                  int64_t epoch) const {
  std::vector<ScoredRollout> prepared;
  for (const int64_t index : sample_indices) {
    const Sample shown = shown_sample(index, epoch);
    prepared.push_back(
        {.sample = &dataset_.samples()[index],
         .ground_truth = order_objects(shown, options_.ordering, options_.seed, epoch),
         .own_prompt = shown.prompt,
         .prompt = make_prompt(shown, epoch, prompts_, options_.patches)});
  }
  return prepared;
}

void RolloutScorer::parse(ScoredRollout& rollout, MetricsBag& metrics) const {
  const Span time(metrics, "time/rollout_parse_match_s");
  check_prompt_ids(rollout.prompt.token_ids, rollout.rollout.prompt_token_ids, options_.backend,
                   rollout.sample->where);
  parse_rollout(rollout, format_, options_.stop_ids);
}

void RolloutScorer::match(ScoredRollout& rollout, MetricsBag& metrics) const {
  const Span time(metrics, "time/rollout_parse_match_s");
  rollout.matching =
      match_objects(to_scene(rollout.parsed.objects), rollout.ground_truth, options_.match);
  observe(rollout, rollout.matching, metrics);
}

void RolloutScorer::observe(const ScoredRollout& rollout, const Matching& matching,
                            MetricsBag& metrics) const {
  observe_matching(to_scene(rollout.parsed.objects), rollout.ground_truth, matching, options_.match,
                   options_.labels, metrics);
  observe_false_boxes(rollout, metrics);
  observe_status(rollout.parsed.status, metrics);
  metrics.add("rollout/parse_dropped_invalid", rollout.parsed.dropped_invalid);
  metrics.add("rollout/prompt_len", rollout.rollout.prompt_token_ids.size());
  metrics.add("rollout/gen_new_tokens", rollout.rollout.response_token_ids.size());
}

void RolloutScorer::observe_false_boxes(const ScoredRollout& rollout, MetricsBag& metrics) const {
  const ParsedRollout& parsed = rollout.parsed;
  // an answer that cannot be read does not say that nothing is there
  if (parsed.objects.empty() && parsed.status != ParseStatus::kComplete) return;
  if (rollout.ground_truth.empty()) {
    metrics.add("rollout/empty_samples", 1);
    metrics.add("rollout/empty_answered", !parsed.objects.empty());
  }
  const auto list = find_class_list(
      rollout.own_prompt.empty() ? options_.usual_prompt : rollout.own_prompt, classes_);
  if (!list) return;
  std::set<std::string> absent, answered;
  for (const std::string& name : list->names) absent.insert(options_.labels.canonical(name));
  for (const SceneObject& object : rollout.sample->objects)
    absent.erase(options_.labels.canonical(object.desc));
  for (const ParsedObject& object : parsed.objects) {
    const std::string name = options_.labels.canonical(object.desc);
    if (absent.contains(name)) answered.insert(name);
  }
  if (absent.empty()) return;
  metrics.add("rollout/absent_names", absent.size());
  metrics.add("rollout/absent_answered", answered.size());
}

}  // namespace rematch
