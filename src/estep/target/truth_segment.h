#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "estep/target/encode_answer.h"
#include "flow/rollout.h"
#include "flow/segment.h"

namespace rematch {

/// An object of an answer that is taught as a whole: what the model is shown and what it is taught
/// there.
struct AnswerEntry {
  SceneObject shown;             ///< desc, and the bins that stand in the text
  std::vector<int> taught_bins;  ///< as many as shown.geometry.bins
  SlotSource source = SlotSource::kAppend;
};

/// prompt + the answer of all entries, numbered from 1 and encoded as one piece + `<|im_end|>`;
/// prefix_len is 0. Cross-entropy on every token that is not a coord token, desc included; coord
/// slots on every coord token.
/// @param text  if given, receives the answer's text
Segment answer_segment(const Prompt& prompt, const std::vector<AnswerEntry>& entries,
                       const AnswerVocab& vocab, std::string* text = nullptr);

/// Imprecise coordinates to learn from (`custom.coord_input_noise`, BEHAVIOUR 14): those shown
/// differ from those taught.
struct InputNoise {
  double sigma_bins = 0;  ///< standard deviation; 0 = none
  /// with the prompt's epoch and sample_id and the number of the coordinate, all that a draw
  /// depends on
  uint64_t seed = 0;
};

/// The segment of plain supervised fine-tuning (BEHAVIOUR 14): answer_segment() of the ground
/// truth.
Segment build_ground_truth_segment(const Prompt& prompt, const std::vector<SceneObject>& objects,
                                   const AnswerVocab& vocab, const InputNoise& noise = {});

}  // namespace rematch
