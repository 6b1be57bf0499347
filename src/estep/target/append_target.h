#pragma once
#include <optional>
#include <vector>

#include "estep/target/target_policy.h"

namespace rematch {

/// A matched pair with the bins to teach at the prediction's coord tokens; nullopt when their
/// construction failed.
struct PairTarget {
  int prediction = 0;    ///< index into ParsedRollout::objects
  int ground_truth = 0;  ///< index into the ground truth
  std::optional<std::vector<int>> bins;
};

/// Coordinate targets of every pair of a matching (BEHAVIOUR 7.1).
std::vector<PairTarget> pair_targets(const TargetInput& input, const TargetSettings& options);

/// The segment of `target_policy: append`: prompt + kept prefix + append + `<|im_end|>`
/// (BEHAVIOUR 7.2–7.5). Cross-entropy on append tokens that are neither coord tokens nor touch a
/// desc value, and on `<|im_end|>`; coord slots on the coord tokens of the append and of the paired
/// predictions.
/// @param targets  pair_targets(); those without bins are excluded and their ground truth is
/// appended
SegmentResult append_missing(const TargetInput& input, const std::vector<PairTarget>& targets,
                             const AnswerFormat& format);

}  // namespace rematch
