#pragma once
#include <string>

#include "program/assembly/job.h"

namespace rematch {

/// Advice on shorter steps when most tokens of the training samples are image tokens: "images are
/// 83 % of the tokens, up to 1024 each: template.max_pixels: 524288 halves the largest". Looks
/// at 32 samples, evenly spread.
/// @return "" when images do not dominate, or are not resized
std::string image_advice(const Job& job);

}  // namespace rematch
