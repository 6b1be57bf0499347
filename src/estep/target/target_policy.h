#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/choices.h"
#include "estep/target/coord_targets.h"
#include "estep/answer/answer_format.h"
#include "flow/parsed.h"
#include "flow/rollout.h"
#include "flow/segment.h"

namespace rematch {

/// What a policy makes a segment of.
struct TargetInput {
  const Prompt& prompt;
  const ParsedRollout& parsed;
  const Matching& matching;                      ///< between parsed.objects and ground_truth
  const std::vector<SceneObject>& ground_truth;  ///< in the order of numbering
};

/// A segment and what became of each object on the way.
struct SegmentResult {
  Segment segment;
  /// what is written behind the prefix; without a prefix the whole answer
  std::string append_text;
  /// (prediction, ground truth) that the target is made with
  std::vector<std::pair<int, int>> pairs;
  /// ground truths without a pair, ascending: unmatched, or excluded
  std::vector<int> false_negatives;
  /// pairs whose predicted coordinates the target shows (`matched_for_supervision`)
  int num_supervised_pairs = 0;
  /// pairs whose target construction failed (`excluded_from_supervision`)
  int num_excluded = 0;
};

/// A way of making the segment of a sample from its rollout. The result has passed
/// check_supervision(); the caller compares the prompt ids (check_prompt_ids) and the length
/// (check_encoded_len).
using TargetPolicy = SegmentResult (*)(const TargetInput& input, const AnswerFormat& format,
                                       const TargetSettings& options);

/// A row of the table of target policies: a new policy is its file and its row.
struct TargetPolicyRow {
  std::string name;
  std::string meaning;
  TargetPolicy build = nullptr;
};

/// Values of `target_policy`.
Choices<TargetPolicyRow>& target_policies();

/// The segment that the policy of `options` makes. @throws UserError (config) for an unknown policy
/// or options out of range
SegmentResult build_segment(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options);

// The policies, one file each.
SegmentResult rewrite_target(const TargetInput& input, const AnswerFormat& format,
                             const TargetSettings& options);
SegmentResult append_target(const TargetInput& input, const AnswerFormat& format,
                            const TargetSettings& options);

/// Indices of the ground truths that no pair holds, ascending.
std::vector<int> missing_indices(const std::vector<std::pair<int, int>>& pairs,
                                 size_t num_ground_truth);

}  // namespace rematch
