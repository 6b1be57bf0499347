#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/rollout.h"
#include "base/flow/segment.h"
#include "learn/estep/answer/answer_format.h"

namespace rematch {

/// Builds the segment prompt + answer of all entries + `<|im_end|>`; prefix_len is 0.
/// @param text  if given, receives the answer's text
Segment answer_segment(const Prompt& prompt, const std::vector<AnswerEntry>& entries,
                       const AnswerFormat& format, std::string* text = nullptr);

/// Noise on the coordinates that the model is shown, not on those it is taught
/// (`custom.coord_input_noise`, BEHAVIOUR 14).
struct InputNoise {
  double sigma_bins = 0;  ///< standard deviation; 0 = none
  /// a draw depends only on it, the prompt's epoch and sample_id, and the index of the coordinate
  uint64_t seed = 0;
};

/// Builds the segment of plain supervised fine-tuning (BEHAVIOUR 14).
Segment build_ground_truth_segment(const Prompt& prompt, const Objects& objects,
                                   const AnswerFormat& format, const InputNoise& noise = {});

}  // namespace rematch
