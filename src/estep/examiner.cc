#include "estep/examiner.h"

#include <utility>

#include "base/error.h"
#include "estep/match/match_policy.h"
#include "estep/match/observe_matching.h"
#include "estep/parse/strict_parser.h"
#include "estep/target/segment_checks.h"

namespace rematch {

Examiner::Examiner(const Dataset& dataset, const PromptEncoder& prompts, const Tokenizer& tokenizer,
                   const CoordVocab& coords, PixelStore& pixels, RolloutEngine& engine,
                   Options options)
    : dataset_(dataset),
      prompts_(prompts),
      tokenizer_(tokenizer),
      coords_(coords),
      pixels_(pixels),
      engine_(engine),
      options_(std::move(options)) {}

Prompt make_prompt(const Sample& sample, int64_t epoch, const PromptEncoder& prompts,
                   const PatchOptions& patches) {
  Prompt prompt{.sample_id = sample.sample_id,
                .epoch = epoch,
                .images = image_refs(sample, patches),
                .where = sample.where};
  std::vector<GridThw> grids;
  for (const ImageRef& image : prompt.images) grids.push_back(image.grid_thw);
  prompt.token_ids = prompts.encode(grids);
  return prompt;
}

void Examiner::prefetch(const std::vector<int64_t>& sample_indices) {
  std::vector<ImageRef> images;
  for (const int64_t index : sample_indices) {
    for (ImageRef& image :
         image_refs(dataset_.samples()[static_cast<size_t>(index)], options_.patches))
      images.push_back(std::move(image));
  }
  pixels_.prefetch(images);
}

Examined Examiner::asked(int64_t sample_idx, int64_t epoch) const {
  const Sample& sample = dataset_.samples()[static_cast<size_t>(sample_idx)];
  Examined one{.sample = &sample, .prompt = make_prompt(sample, epoch, prompts_, options_.patches)};
  one.ground_truth = order_objects(sample, options_.ordering, options_.seed, epoch);
  return one;
}

void Examiner::judge(Examined& one, Rollout rollout) const {
  one.rollout = std::move(rollout);
  check_prompt_ids(one.prompt.token_ids, one.rollout.prompt_token_ids, options_.backend,
                   one.sample->where);
  one.parsed =
      parse_rollout(one.rollout.response_token_ids, tokenizer_, coords_, options_.stop_ids);
  one.matching = match_objects(scene_of(one.parsed.objects), one.ground_truth, options_.match);
}

Examined Examiner::judged(int64_t sample_idx, int64_t epoch, Rollout rollout) const {
  Examined one = asked(sample_idx, epoch);
  judge(one, std::move(rollout));
  return one;
}

std::vector<Examined> Examiner::examine(const std::vector<int64_t>& sample_indices, int64_t epoch,
                                        MetricsBag& metrics,
                                        const std::function<void(int)>& on_progress) {
  std::vector<Examined> examined;
  std::vector<Prompt> prompts;
  for (const int64_t index : sample_indices) {
    examined.push_back(asked(index, epoch));
    prompts.push_back(examined.back().prompt);
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
    judge(one, std::move(rollouts[i]));
    observe(one, one.matching, metrics);
  }
  return examined;
}

void Examiner::observe(const Examined& one, const Matching& matching, MetricsBag& metrics) const {
  observe_matching(scene_of(one.parsed.objects), one.ground_truth, matching, options_.match,
                   options_.labels, metrics);
  observe_status(one.parsed.status, metrics);
  metrics.add("rollout/parse_dropped_invalid", one.parsed.dropped_invalid);
  metrics.add("rollout/prompt_len", static_cast<double>(one.rollout.prompt_token_ids.size()));
  metrics.add("rollout/gen_new_tokens", static_cast<double>(one.rollout.response_token_ids.size()));
}

}  // namespace rematch
