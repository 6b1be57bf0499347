#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "estep/answer/answer_format.h"
#include "flow/rollout.h"
#include "flow/segment.h"

namespace rematch {

/// prompt + the answer of all entries as its format teaches it + `<|im_end|>`; prefix_len is 0.
/// @param text  if given, receives the answer's text
Segment answer_segment(const Prompt& prompt, const std::vector<AnswerEntry>& entries,
                       const AnswerFormat& format, std::string* text = nullptr);

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
                                   const AnswerFormat& format, const InputNoise& noise = {});

}  // namespace rematch
