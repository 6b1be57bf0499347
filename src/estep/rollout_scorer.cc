#include "estep/rollout_scorer.h"

#include <utility>

#include "augment/augmentation.h"
#include "estep/match/match_policy.h"
#include "estep/match/observe_matching.h"
#include "estep/answer/object_score.h"
#include "estep/target/segment_checks.h"

namespace rematch {

RolloutScorer::RolloutScorer(const Dataset& dataset, const PromptEncoder& prompts,
                             const AnswerFormat& format, PixelStore& pixels, Options options)
    : dataset_(dataset),
      prompts_(prompts),
      format_(format),
      pixels_(pixels),
      options_(std::move(options)) {}

Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts,
                   const PatchOptions& patches) {
  Prompt prompt{.sample_id = sample.sample_id,
                .epoch = epoch,
                .images = image_refs(sample, patches),
                .where = sample.where};
  std::vector<GridThw> grids;
  for (const ImageRef& image : prompt.images) grids.push_back(image.grid_thw);
  if (!grids.empty()) prompt.resized_px = resized_px(grids.front(), patches);
  prompt.token_ids = prompts.encode(grids, sample.prompt);
  return prompt;
}

void RolloutScorer::prefetch(const std::vector<int64_t>& sample_indices, int64_t epoch) const {
  std::vector<ImageRef> images;
  for (const int64_t index : sample_indices) {
    const Sample sample = augmented(dataset_.samples()[static_cast<size_t>(index)],
                                    options_.augment, options_.seed, epoch);
    for (ImageRef& image : image_refs(sample, options_.patches)) images.push_back(std::move(image));
  }
  pixels_.prefetch(images);
}

std::vector<ScoredRollout> RolloutScorer::prepare(const std::vector<int64_t>& sample_indices,
                                                  int64_t epoch) const {
  std::vector<ScoredRollout> prepared;
  for (const int64_t index : sample_indices) {
    const Sample& sample = dataset_.samples()[static_cast<size_t>(index)];
    const Sample shown = augmented(sample, options_.augment, options_.seed, epoch);
    prepared.push_back(
        {.sample = &sample,
         .ground_truth = order_objects(shown, options_.ordering, options_.seed, epoch),
         .prompt = make_prompt(shown, epoch, prompts_, options_.patches)});
  }
  return prepared;
}

void RolloutScorer::parse(ScoredRollout& one, MetricsBag& metrics) const {
  const Span time(metrics, "time/rollout_parse_match_s");
  check_prompt_ids(one.prompt.token_ids, one.rollout.prompt_token_ids, options_.backend,
                   one.sample->where);
  one.parsed = format_.parse(one.rollout.response_token_ids, options_.stop_ids, one.prompt);
  one.scores = object_scores(one.parsed.objects, one.rollout.token_logprobs);
}

void RolloutScorer::match(ScoredRollout& one, MetricsBag& metrics) const {
  const Span time(metrics, "time/rollout_parse_match_s");
  one.matching = match_objects(to_scene(one.parsed.objects), one.ground_truth, options_.match);
  observe(one, one.matching, metrics);
}

void RolloutScorer::observe(const ScoredRollout& one, const Matching& matching,
                            MetricsBag& metrics) const {
  observe_matching(to_scene(one.parsed.objects), one.ground_truth, matching, options_.match,
                   options_.labels, metrics);
  observe_status(one.parsed.status, metrics);
  metrics.add("rollout/parse_dropped_invalid", one.parsed.dropped_invalid);
  metrics.add("rollout/prompt_len", static_cast<double>(one.rollout.prompt_token_ids.size()));
  metrics.add("rollout/gen_new_tokens", static_cast<double>(one.rollout.response_token_ids.size()));
}

}  // namespace rematch
