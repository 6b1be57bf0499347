#pragma once
#include <functional>
#include <vector>

#include "base/metrics.h"
#include "estep/rollout_scorer.h"
#include "rollout/engine.h"
#include "rollout/offload.h"

namespace rematch {

/// An engine, and what makes room for it.
struct RolloutSource {
  RolloutEngine& engine;
  Offload* offload = nullptr;  ///< used only when the engine holds its own weights
};

/// Rolls out the prompts of prepared samples with the weights that the engine has. Adds
/// time/rollout_generate_s.
/// @param on_progress  number of finished rollouts, may be empty. @throws as the engine;
/// Interrupted
void roll_out(RolloutEngine& engine, std::vector<ScoredRollout>& prepared, MetricsBag& metrics,
              const std::function<void(int)>& on_progress = {});

/// Samples that are rolled out together.
struct SampleBatch {
  std::vector<int64_t> samples;  ///< into the scorer's data set
  int64_t epoch = 0;             ///< part of the key of sampling randomness
};

/// A scored batch. @param metrics  what was observed of it
using OnBatch =
    std::function<void(size_t batch, std::vector<ScoredRollout> scored, MetricsBag metrics)>;

/// A pass over a data set with the present weights: prefetches the images of the next batch, rolls
/// out, parses and matches each batch, and reports progress.
/// @param on_progress  number of finished rollouts of all batches, may be empty
/// @throws as roll_out() and RolloutScorer::parse()
void score_batches(const RolloutScorer& scorer, const RolloutSource& source,
                   const std::vector<SampleBatch>& batches,
                   const std::function<void(int64_t)>& on_progress, const OnBatch& on_batch);

}  // namespace rematch
