#include "estep/examiner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "estep/match/match_policy.h"
#include "estep/match/repeats.h"
#include "estep/parse/strict_parser.h"
#include "estep/target/segment_checks.h"

namespace rematch {
namespace {

constexpr double kRepeatIou = 0.5;  // of `duplicates`, whatever dedup_iou is

}  // namespace

Examiner::Examiner(const Dataset& dataset, const PromptEncoder& prompts, const Tokenizer& tokenizer, const CoordVocab& coords,
                   PixelStore& pixels, RolloutEngine& engine, Options options)
    : dataset_(dataset),
      prompts_(prompts),
      tokenizer_(tokenizer),
      coords_(coords),
      pixels_(pixels),
      engine_(engine),
      options_(std::move(options)) {}

Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts, const PatchOptions& patches) {
  Prompt prompt{.sample_id = sample.sample_id, .epoch = epoch, .images = image_refs(sample, patches), .where = sample.where};
  std::vector<GridThw> grids;
  for (const ImageRef& image : prompt.images) grids.push_back(image.grid_thw);
  prompt.token_ids = prompts.encode(grids);
  return prompt;
}

void Examiner::prefetch(const std::vector<int64_t>& sample_indices) {
  std::vector<ImageRef> images;
  for (const int64_t index : sample_indices) {
    for (ImageRef& image : image_refs(dataset_.samples()[static_cast<size_t>(index)], options_.patches)) images.push_back(std::move(image));
  }
  pixels_.prefetch(images);
}

std::vector<Examined> Examiner::examine(const std::vector<int64_t>& sample_indices, int64_t epoch, MetricsBag& metrics,
                                        const std::function<void(int)>& on_progress) {
  std::vector<Examined> examined;
  std::vector<Prompt> prompts;
  for (const int64_t index : sample_indices) {
    const Sample& sample = dataset_.samples()[static_cast<size_t>(index)];
    Examined one{.sample = &sample, .prompt = make_prompt(sample, epoch, prompts_, options_.patches)};
    one.ground_truth = order_objects(sample, options_.ordering, options_.seed, epoch);
    prompts.push_back(one.prompt);
    examined.push_back(std::move(one));
  }

  std::vector<Rollout> rollouts;
  {
    Span generate_time(metrics, "time/rollout_generate_s");
    rollouts = engine_.generate(prompts, on_progress);
  }
  REMATCH_CHECK(rollouts.size() == prompts.size(), "an engine must answer every prompt");

  Span parse_match_time(metrics, "time/rollout_parse_match_s");
  for (size_t i = 0; i < examined.size(); ++i) {
    Examined& one = examined[i];
    one.rollout = std::move(rollouts[i]);
    check_prompt_ids(one.prompt.token_ids, one.rollout.prompt_token_ids, options_.backend, one.sample->where);
    one.parsed = parse_rollout(one.rollout.response_token_ids, tokenizer_, coords_, options_.stop_ids);
    one.matching = match_objects(scene_of(one.parsed.objects), one.ground_truth, options_.match);
    observe(one, one.matching, metrics);
  }
  return examined;
}

void Examiner::observe(const Examined& one, const Matching& matching, MetricsBag& metrics) const {
  const auto num_pred = static_cast<double>(one.parsed.objects.size());
  const auto num_gt = static_cast<double>(one.ground_truth.size());
  const auto num_matched = static_cast<double>(matching.pairs.size());
  metrics.add("rollout/gt_objects", num_gt);
  metrics.add("rollout/valid_pred_objects", num_pred);
  metrics.add("rollout/matched", num_matched);
  const auto is_named_right = [&](const std::pair<int, int>& pair) {
    return options_.labels.canonical(one.parsed.objects[static_cast<size_t>(pair.first)].desc) ==
           options_.labels.canonical(one.ground_truth[static_cast<size_t>(pair.second)].desc);
  };
  const auto num_named_right = std::count_if(matching.pairs.begin(), matching.pairs.end(), is_named_right);
  metrics.add("rollout/matched_labels", static_cast<double>(num_named_right));
  const auto repeated = repeated_objects(scene_of(one.parsed.objects), kRepeatIou, options_.match.maskiou_resolution, RepeatOf::kEarlier);
  metrics.add("rollout/repeated_objects", static_cast<double>(repeated.size()));
  metrics.add("rollout/fp", num_pred - num_matched);
  metrics.add("rollout/fn", num_gt - num_matched);
  metrics.add("rollout/gating_rejections", matching.gating_rejections);
  metrics.add("rollout/candidate_pairs", num_pred * std::min<double>(options_.match.candidate_top_k, num_gt));
  metrics.add("rollout/matched_maskiou_sum", matching.matched_maskiou_sum);
  metrics.add("rollout/parse_truncated", one.parsed.status == ParseStatus::kTruncated);
  metrics.add("rollout/parse_malformed", one.parsed.status == ParseStatus::kMalformed);
  metrics.add("rollout/parse_dropped_invalid", one.parsed.dropped_invalid);
  metrics.add("rollout/sample_valid_pred", num_pred > 0);
  metrics.add("rollout/sample_any_match", num_matched > 0);
  metrics.add("rollout/prompt_len", static_cast<double>(one.rollout.prompt_token_ids.size()));
  metrics.add("rollout/gen_new_tokens", static_cast<double>(one.rollout.response_token_ids.size()));
  metrics.add("rollout/prefix_len", static_cast<double>(one.parsed.prefix_token_ids.size()));
}

}  // namespace rematch
