#include "learn/estep/roll_out.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "engine/rollout/with_engine.h"

namespace rematch {

std::vector<SampleBatch> make_batches(const std::vector<int64_t>& samples, int size,
                                      int64_t epoch) {
  std::vector<SampleBatch> batches;
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = first + std::min<std::ptrdiff_t>(size, samples.end() - first);
    batches.push_back({{first, last}, epoch});
    first = last;
  }
  return batches;
}

std::vector<SampleBatch> all_batches(int64_t num_samples, int size) {
  std::vector<int64_t> samples(num_samples);
  std::iota(samples.begin(), samples.end(), 0);
  return make_batches(samples, size, 0);
}

void roll_out(RolloutEngine& engine, std::vector<ScoredRollout>& prepared, MetricsBag& metrics,
              const std::function<void(int)>& on_progress) {
  std::vector<Prompt> prompts;
  for (const ScoredRollout& rollout : prepared) prompts.push_back(rollout.prompt);

  const Span time(metrics, "time/rollout_generate_s");
  std::vector<Rollout> rollouts = engine.generate(prompts, on_progress);
  REMATCH_CHECK(rollouts.size() == prompts.size(), "an engine must answer every prompt");
  for (size_t i = 0; i < prepared.size(); ++i) prepared[i].rollout = std::move(rollouts[i]);
}

void score_batches(const RolloutScorer& scorer, const RolloutSource& source,
                   const std::vector<SampleBatch>& batches,
                   const std::function<void(int64_t)>& on_progress, const OnBatch& on_batch) {
  int64_t num_done = 0;
  const auto report = [&](int num_finished) {
    if (on_progress) on_progress(num_done + num_finished);
  };
  const auto prefetch = [&](size_t idx) {
    if (idx < batches.size()) scorer.prefetch(batches[idx].samples, batches[idx].epoch);
  };

  const auto score_batch = [&](size_t idx) {
    prefetch(idx + 1);
    MetricsBag metrics;
    std::vector<ScoredRollout> batch = scorer.prepare(batches[idx].samples, batches[idx].epoch);
    roll_out(source.engine, batch, metrics, report);
    for (ScoredRollout& rollout : batch) {
      scorer.parse(rollout, metrics);
      scorer.match(rollout, metrics);
    }
    num_done += std::ssize(batch);
    report(0);
    on_batch(idx, std::move(batch), std::move(metrics));
  };

  prefetch(0);
  with_engine(source.engine, source.offload, kCurrentWeights, [&] {
    for (size_t idx = 0; idx < batches.size(); ++idx) score_batch(idx);
  });
}

}  // namespace rematch
