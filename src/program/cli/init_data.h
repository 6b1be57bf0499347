#pragma once
#include <cstdint>
#include <optional>
#include <string>
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

/// The `template.max_pixels` line with its reasons as comments.
std::string image_budget_lines(const ImageBudget& budget);

/// The prompt with the names of the classes, most frequent first: "… Labels: cat, dog."
struct ClassPrompt {
  /// nullopt where a list helps nothing: more than 40 classes, free text (fewer than two objects a
  /// class), or records that have prompts
  std::optional<std::string> text;
  std::string note;  ///< for too many classes
};
ClassPrompt class_list_prompt(const Dataset& train, const std::string& prompt);

/// The keys of `training` with the reasons as comments: enough epochs for 200 optimizer steps.
/// @param num_samples  ≥ 1
/// @param has_val  evaluates when it saves
std::string schedule_lines(int64_t num_samples, bool has_val, bool is_stage_1);

}  // namespace rematch
