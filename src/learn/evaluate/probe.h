#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "learn/estep/roll_out.h"
#include "learn/evaluate/probe_verdict.h"

namespace rematch {

class Terminal;

/// Measures what stage 2 can gain from a checkpoint: its greedy answers, then sampled answers for
/// images with missed objects. The two passes may use different engines, since decoding options
/// belong to an engine. Both need the truths in one order.
class Probe {
 public:
  /// An engine and the scorer of its answers; both must outlive the call.
  struct Answers {
    const RolloutScorer& scorer;
    RolloutSource source;
    int batch_size = 1;  ///< samples per call of the engine
  };

  /// First pass: one greedy answer for each sample.
  /// @param on_answer  sees each of them
  /// @throws UserError, Interrupted as score_batches()
  void measure_greedy(const Answers& answers, Terminal& terminal,
                      const std::function<void(const ScoredRollout&)>& on_answer);
  /// Second pass: `num_draws` sampled answers for each sample with a missed object. Draw 1, 2, …
  /// uses that epoch as sampling key.
  void measure_draws(const Answers& answers, int num_draws, Terminal& terminal);

  ProbeNumbers numbers() const;

 private:
  /// A sample with objects that the greedy answer missed.
  struct Miss {
    int64_t sample_idx = 0;
    std::vector<int> missing;  ///< indices of the missed truths
    std::vector<bool> found;   ///< flags: found by a draw
  };
  void add(const ScoredRollout& rollout, const Matching& matching_50, const RolloutScorer& scorer,
           int64_t sample_idx);
  ProbeBucket& find_bucket(size_t num_truths);

  ProbeNumbers numbers_;                ///< without the buckets
  std::map<int, ProbeBucket> buckets_;  ///< by min_objects
  std::vector<Miss> misses_;            ///< by sample
};

}  // namespace rematch
