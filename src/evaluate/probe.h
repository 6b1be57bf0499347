#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "estep/roll_out.h"
#include "evaluate/probe_verdict.h"

namespace rematch {

class Terminal;

/// Measures whether stage 2 can help a checkpoint: its greedy answers, then sampled answers to the
/// images where something is missing. The two passes may use two engines, as decoding options
/// belong to an engine. Truths must stand in the sorted order in both.
class Probe {
 public:
  /// An engine and the scorer of its answers; both outlive the call.
  struct Answers {
    const RolloutScorer& scorer;
    RolloutSource source;
    int batch_size = 1;  ///< samples passed to the engine together
  };

  /// First pass: one greedy answer for each sample. @throws UserError, Interrupted as
  /// score_batches()
  void measure_greedy(const Answers& answers, Terminal& terminal);
  /// Second pass: `num_draws` sampled answers for each sample that misses an object. Epoch 1, 2, …
  /// key the draws.
  void measure_draws(const Answers& answers, int num_draws, Terminal& terminal);

  ProbeNumbers numbers() const;

 private:
  /// A sample whose greedy answer misses something.
  struct Miss {
    int64_t sample_idx = 0;
    std::vector<int> missing;  ///< truths, by place
    std::vector<bool> found;   ///< of those, by any draw
  };
  void add(const ScoredRollout& one, const Matching& matching_50, const RolloutScorer& scorer,
           int64_t sample_idx);
  ProbeBucket& bucket_of(size_t num_truths);

  ProbeNumbers numbers_;                ///< all but the buckets
  std::map<int, ProbeBucket> buckets_;  ///< by min_objects
  std::vector<Miss> misses_;            ///< by sample
};

}  // namespace rematch
