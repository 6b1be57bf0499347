#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/settings/data.h"
#include "learn/data/dataset.h"
#include "learn/estep/answer/answer_format.h"

namespace rematch {

/// Lengths in tokens over a data set.
struct SampleLengths {
  int64_t longest_prompt = 0;  ///< with its image
  int64_t median_answer = 0, longest_answer = 0;
};

/// The answer format of a checkpoint.
const AnswerFormatRow& format_of(const std::string& model_dir);

/// Measures a data set with a model's tokenizer, patches and stored prompt (else the built-in one);
/// reads no image.
/// @param user_prompt  in place of that prompt's user text.
/// @param images  settings that take precedence over the model's image processor
/// @throws UserError when the directory lacks a part, e.g. coord tokens
SampleLengths measure_lengths(const Dataset& dataset, const std::string& model_dir,
                              const std::optional<std::string>& user_prompt = {},
                              const ImageSettings& images = {});

}  // namespace rematch
