#pragma once
#include <functional>
#include <vector>

#include "base/metrics.h"
#include "engine/rollout/engine.h"
#include "engine/rollout/offload.h"
#include "learn/estep/rollout_scorer.h"

namespace rematch {

/// A rollout engine, and the offload that makes room for it.
struct RolloutSource {
  RolloutEngine& engine;
  Offload* offload = nullptr;  ///< used only when the engine holds its own weights
};

/// Generates the rollouts of prepared samples with the engine's current weights. Adds
/// time/rollout_generate_s.
/// @param on_progress  takes the number of finished rollouts; may be empty
/// @throws as the engine; Interrupted
void roll_out(RolloutEngine& engine, std::vector<ScoredRollout>& prepared, MetricsBag& metrics,
              const std::function<void(int)>& on_progress = {});

/// Samples passed to the engine together.
struct SampleBatch {
  std::vector<int64_t> samples;  ///< indices into the scorer's data set
  int64_t epoch = 0;             ///< part of the sampling key
};

/// Cuts samples into batches, in order.
/// @param size  ≥ 1
std::vector<SampleBatch> make_batches(const std::vector<int64_t>& samples, int size, int64_t epoch);
/// The same of all samples of a data set, in epoch 0.
std::vector<SampleBatch> all_batches(int64_t num_samples, int size);

/// Takes a scored batch.
/// @param metrics  observations of the batch
using OnBatch =
    std::function<void(size_t batch, std::vector<ScoredRollout> scored, MetricsBag metrics)>;

/// Makes a pass over a data set with the current weights: rolls out, parses and matches each batch
/// while the images of the next one are loaded.
/// @param on_progress  takes the number of finished rollouts of all batches; may be empty
/// @throws as roll_out() and RolloutScorer::parse()
void score_batches(const RolloutScorer& scorer, const RolloutSource& source,
                   const std::vector<SampleBatch>& batches,
                   const std::function<void(int64_t)>& on_progress, const OnBatch& on_batch);

}  // namespace rematch
