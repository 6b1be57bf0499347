#pragma once
#include <string>

#include "program/assembly/job.h"

namespace rematch {

/// Advice on shorter steps when most tokens of the training samples are image tokens: "images are
/// 83 % of the tokens, up to 1024 each: template.max_pixels: 524288 halves the largest". Looks
/// at 32 samples, evenly spread.
/// @return "" when images do not dominate, or are not resized
std::string image_advice(const Job& job);

/// Tokens of some samples.
struct ImageTokens {
  int64_t num_image = 0;  ///< that stand for images
  int64_t num_all = 0;
  int64_t most = 0;  ///< of one image
};
/// The advice where images are half of the tokens or more; else "".
/// @param side_px  side of the square of an image that becomes a token
std::string image_advice_text(const ImageTokens& tokens, int64_t side_px);

}  // namespace rematch
