#pragma once
#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace rematch {

/// Lengths in tokens over a data set.
struct SampleLengths {
  int64_t longest_prompt = 0;  ///< with its image
  int64_t median_answer = 0, longest_answer = 0;
  int64_t longest = 0;  ///< prompt and true answer together
};

/// Measures a data set with a model's tokenizer, patches and stored prompt (else the built-in one);
/// reads no image.
/// @throws UserError when the directory lacks a part, e.g. coord tokens
SampleLengths measure_lengths(const Dataset& dataset, const std::string& model_dir);

}  // namespace rematch
