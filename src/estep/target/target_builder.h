#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estep/target/coord_targets.h"
#include "estep/target/encode_answer.h"
#include "flow/parsed.h"
#include "flow/rollout.h"
#include "flow/segment.h"

namespace rematch {

/// A matched pair with the bins to teach at the prediction's coord tokens; nullopt when their construction failed.
struct PairTarget {
  int prediction = 0;    ///< index into ParsedRollout::objects
  int ground_truth = 0;  ///< index into the ground truth
  std::optional<std::vector<int>> bins;
};

/// A segment and what became of each object on the way.
struct SegmentResult {
  Segment segment;
  std::string append_text;
  std::vector<std::pair<int, int>> pairs;  ///< (prediction, ground truth) that are supervised
  std::vector<int> false_negatives;        ///< ground truths appended, ascending: unmatched, or excluded
  int num_excluded = 0;                    ///< pairs whose target construction failed (`excluded_from_supervision`)
};

/// Coordinate targets of every pair of a matching.
std::vector<PairTarget> pair_targets(const ParsedRollout& parsed, const Matching& matching, const std::vector<SceneObject>& ground_truth,
                                     const TargetSettings& options);

/// Puts a segment together: prompt + kept prefix + append + `<|im_end|>`, with its supervision (BEHAVIOUR 7.2–7.6).
/// Cross-entropy on append tokens that are neither coord tokens nor touch a desc value, and on `<|im_end|>`; coord slots on the coord
/// tokens of the append and of the paired predictions. The result has passed check_supervision(); the caller compares the prompt ids
/// (check_prompt_ids) and the length (check_encoded_len).
/// @param targets  pair_targets(); those without bins are excluded and their ground truth is appended
SegmentResult assemble_segment(const Prompt& prompt, const ParsedRollout& parsed, const std::vector<PairTarget>& targets,
                               const std::vector<SceneObject>& ground_truth, const AnswerVocab& vocab);

/// pair_targets() and assemble_segment() in one. @param ground_truth  in the order of numbering, the one the matching was made with
SegmentResult build_segment(const Prompt& prompt, const ParsedRollout& parsed, const Matching& matching,
                            const std::vector<SceneObject>& ground_truth, const AnswerVocab& vocab, const TargetSettings& options);

/// The segment of plain supervised fine-tuning (BEHAVIOUR 14): prompt + the whole answer + `<|im_end|>`; cross-entropy on every
/// token that is not a coord token, desc included, coord slots on every coord token. prefix_len is 0.
Segment build_ground_truth_segment(const Prompt& prompt, const std::vector<SceneObject>& objects, const AnswerVocab& vocab);

}  // namespace rematch
