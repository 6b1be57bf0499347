#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/choices.h"
#include "base/flow/parsed.h"
#include "base/flow/rollout.h"
#include "base/flow/segment.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/teach/coord_targets.h"

namespace rematch {

/// Input of a target policy.
struct TargetInput {
  const Prompt& prompt;
  const ParsedRollout& parsed;
  const Matching& matching;     ///< between parsed.objects and ground_truth
  const Objects& ground_truth;  ///< in the order of numbering
};

/// A segment with its pairs and counts.
struct SegmentResult {
  Segment segment;
  /// text after the prefix; the whole answer if there is no prefix
  std::string append_text;
  /// (prediction, ground truth) pairs used by the target
  std::vector<std::pair<int, int>> pairs;
  /// ground truths without a pair, ascending: unmatched, or excluded
  std::vector<int> false_negatives;
  /// pairs with predicted coordinates in the segment (`matched_for_supervision`)
  int num_supervised_pairs = 0;
  /// pairs without a target, because its construction failed (`excluded_from_supervision`)
  int num_excluded = 0;
};

/// Builds the segment of a sample from its rollout. The result has passed check_supervision(); the
/// caller checks the prompt ids (check_prompt_ids) and the length (check_encoded_len).
using TargetPolicy = SegmentResult (*)(const TargetInput& input, const AnswerFormat& format,
                                       const TargetSettings& options);

/// An entry of the table of target policies. A new policy needs its file and its entry.
struct TargetPolicyRow {
  std::string name;
  std::string meaning;
  TargetPolicy build = nullptr;
};

/// Values of `target_policy`.
Choices<TargetPolicyRow>& target_policies();

/// Applies the policy of `options`.
/// @throws UserError (config) for an unknown policy or options out of range
SegmentResult build_segment(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options);

// The policies, one file each.
SegmentResult rewrite_target(const TargetInput& input, const AnswerFormat& format,
                             const TargetSettings& options);
SegmentResult append_target(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options);

/// Ascending indices of the ground truths without a pair.
std::vector<int> missing_indices(const std::vector<std::pair<int, int>>& pairs,
                                 size_t num_ground_truth);

}  // namespace rematch
