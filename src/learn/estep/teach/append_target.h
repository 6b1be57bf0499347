#pragma once
#include <optional>
#include <vector>

#include "learn/estep/teach/target_policy.h"

namespace rematch {

/// A matched pair with target bins for the prediction's coord tokens; nullopt when their
/// construction failed.
struct PairTarget {
  int prediction = 0;    ///< index into ParsedRollout::objects
  int ground_truth = 0;  ///< index into the ground truth
  std::optional<std::vector<int>> bins;
};

/// Computes the target bins of every matched pair (BEHAVIOUR 7.1).
std::vector<PairTarget> pair_targets(const TargetInput& input, const TargetSettings& options);

/// Builds the segment of `target_policy: append`: prompt + kept prefix + append + `<|im_end|>`
/// (BEHAVIOUR 7.2–7.5). Cross-entropy on `<|im_end|>` and on append tokens outside coord tokens and
/// descs; coord slots on the coord tokens of the append and of the paired predictions.
/// @param targets  pair_targets(); a pair without bins is excluded and its ground truth appended
SegmentResult append_missing(const TargetInput& input, const std::vector<PairTarget>& targets,
                             const AnswerFormat& format);

}  // namespace rematch
