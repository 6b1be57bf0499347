#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "learn/data/dataset.h"
#include "model/vision/patches.h"

namespace rematch {

/// Images that cost more tokens than a first run should spend on them.
struct ImageBudget {
  int64_t max_pixels = 0;        ///< the area to write as template.max_pixels
  int64_t most_tokens = 0;       ///< tokens of an image of that area
  bool is_of_processor = false;  ///< the area is that of the model's processor
  int64_t num_larger = 0;        ///< images beyond it
  ImageSize largest;             ///< of these, as stored
  int64_t largest_tokens = 0;    ///< without the limit
};

/// Looks at the sizes that the records state, which training compares with the files.
/// @return nullopt if no image has more than 1280 tokens, or is made smaller by a processor that
/// takes fewer
std::optional<ImageBudget> find_image_budget(const std::vector<Dataset>& data,
                                             const PatchOptions& patches);

}  // namespace rematch
