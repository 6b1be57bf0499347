#include "estep/roll_out.h"

#include <utility>

#include "base/error.h"
#include "rollout/generation_scope.h"

namespace rematch {

void roll_out(RolloutEngine& engine, std::vector<ScoredRollout>& prepared, MetricsBag& metrics,
              const std::function<void(int)>& on_progress) {
  std::vector<Prompt> prompts;
  for (const ScoredRollout& one : prepared) prompts.push_back(one.prompt);

  const Span time(metrics, "time/rollout_generate_s");
  std::vector<Rollout> rollouts = engine.generate(prompts, on_progress);
  REMATCH_CHECK(rollouts.size() == prompts.size(), "an engine must answer every prompt");
  for (size_t i = 0; i < prepared.size(); ++i) prepared[i].rollout = std::move(rollouts[i]);
}

void score_batches(const RolloutScorer& scorer, const RolloutSource& source,
                   const std::vector<SampleBatch>& batches,
                   const std::function<void(int64_t)>& on_progress, const OnBatch& on_batch) {
  if (!batches.empty()) scorer.prefetch(batches.front().samples, batches.front().epoch);
  GenerationScope scope(source.engine, source.offload, kCurrentWeights);
  int64_t num_done = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (i + 1 < batches.size()) scorer.prefetch(batches[i + 1].samples, batches[i + 1].epoch);
    const auto report = [&](int finished) {
      if (on_progress) on_progress(num_done + finished);
    };

    MetricsBag metrics;
    std::vector<ScoredRollout> batch = scorer.prepare(batches[i].samples, batches[i].epoch);
    roll_out(source.engine, batch, metrics, report);
    for (ScoredRollout& one : batch) {
      scorer.parse(one, metrics);
      scorer.match(one, metrics);
    }

    num_done += std::ssize(batch);
    report(0);
    on_batch(i, std::move(batch), std::move(metrics));
  }
  scope.finish();
}

}  // namespace rematch
