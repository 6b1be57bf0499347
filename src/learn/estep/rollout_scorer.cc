#include "learn/estep/rollout_scorer.h"

#include <utility>

#include "learn/augment/augmentation.h"
#include "learn/estep/answer/object_score.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/match/observe_matching.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {

RolloutScorer::RolloutScorer(const Dataset& dataset, const PromptEncoder& prompts,
                             const AnswerFormat& format, PixelStore& pixels, Options options)
    : dataset_(dataset),
      prompts_(&prompts),
      format_(format),
      pixels_(&pixels),
      options_(std::move(options)) {}

RolloutScorer::RolloutScorer(const Dataset& dataset, const AnswerFormat& format, Options options)
    : dataset_(dataset), format_(format), options_(std::move(options)) {}

namespace {

/// @param prompts  null: without tokens
Prompt open_prompt(const Sample& sample, int64_t epoch, const PromptEncoder* prompts,
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

}  // namespace

Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts,
                   const PatchOptions& patches) {
  return open_prompt(sample, epoch, &prompts, patches);
}

void parse_rollout(ScoredRollout& rollout, const AnswerFormat& format,
                   const std::vector<TokenId>& stop_ids) {
  rollout.parsed = format.parse(rollout.rollout.response_token_ids, stop_ids, rollout.prompt);
  rollout.scores = object_scores(rollout.parsed.objects, rollout.rollout.token_logprobs);
}

Sample RolloutScorer::shown_sample(int64_t index, int64_t epoch) const {
  return augment_sample(dataset_.samples()[static_cast<size_t>(index)], options_.augment,
                        options_.seed, epoch);
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
        {.sample = &dataset_.samples()[static_cast<size_t>(index)],
         .ground_truth = order_objects(shown, options_.ordering, options_.seed, epoch),
         .prompt = open_prompt(shown, epoch, prompts_, options_.patches)});
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
  observe_status(rollout.parsed.status, metrics);
  metrics.add("rollout/parse_dropped_invalid", rollout.parsed.dropped_invalid);
  metrics.add("rollout/prompt_len", static_cast<double>(rollout.rollout.prompt_token_ids.size()));
  metrics.add("rollout/gen_new_tokens",
              static_cast<double>(rollout.rollout.response_token_ids.size()));
}

}  // namespace rematch
