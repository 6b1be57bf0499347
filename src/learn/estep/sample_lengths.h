#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "learn/estep/answer/answer_format.h"
#include "learn/estep/rollout_scorer.h"

namespace rematch {

/// Number of tokens in a sample's prompt (image pads included) and in its full ground-truth answer
/// (`<|im_end|>` included).
struct SampleLength {
  int prompt_len = 0;
  int answer_len = 0;

  int total() const { return prompt_len + answer_len; }
};

/// Options of measure_samples().
struct MeasureOptions {
  ObjectOrder ordering = ObjectOrdering::kSorted;
  uint64_t seed = 42;
  /// later epochs may reorder the objects: measure the longest answer of all orders
  bool any_order = false;
  /// ≥ 0; largest distance between a shown and a true coordinate, for formats in which coordinates
  /// change the length (more digits are longer)
  int coord_slack_bins = 0;
  int num_new_vertices = 0;  ///< ≥ 0; vertices that augmentation may add to a polygon
  AugmentSettings augment;   ///< the absent classes that it may add to a prompt
  PatchOptions patches;
  int num_threads = 0;  ///< 0: one for each core, at most 16; does not affect the result
};

/// Measures all samples: their length in epoch 0, or with any_order the length of the longest order
/// of their objects. Uses the texts and image sizes of the records; reads no image.
/// @param on_progress  takes the number of measured samples; called on this thread, finally with
/// all of them; may throw Interrupted Cost: the tokenizer on every answer (16 to 27 microseconds
/// for 800 tokens, divided by the threads); with any_order twice that on samples with boxes and
/// polygons.
std::vector<SampleLength> measure_samples(const Dataset& dataset, const PromptEncoder& prompts,
                                          const AnswerFormat& format, const MeasureOptions& options,
                                          const std::function<void(int64_t)>& on_progress);

}  // namespace rematch
