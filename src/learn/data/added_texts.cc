#include "learn/data/added_texts.h"

#include <fmt/core.h>

#include "base/flow/sample.h"

namespace rematch {

ForbiddenTexts forbidden_texts(const Strings& added_tokens) {
  Strings texts = added_tokens;
  for (const char* name : {"endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end",
                           "box_start", "box_end", "quad_start", "quad_end", "vision_start",
                           "vision_end", "vision_pad", "image_pad", "video_pad"})
    texts.push_back(fmt::format("<|{}|>", name));
  for (int bin = 0; bin < kNumBins; ++bin) texts.push_back(fmt::format("<|coord_{}|>", bin));
  return ForbiddenTexts(texts);
}

}  // namespace rematch
