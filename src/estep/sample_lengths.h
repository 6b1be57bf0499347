#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "estep/rollout_scorer.h"
#include "estep/answer/answer_format.h"

namespace rematch {

/// Tokens of a sample's prompt, image pads included, and of its full truth with the token that ends
/// it.
struct SampleLength {
  int prompt_len = 0;
  int answer_len = 0;

  int total() const { return prompt_len + answer_len; }
};

/// How samples are measured.
struct MeasureOptions {
  ObjectOrdering ordering = ObjectOrdering::kSorted;
  uint64_t seed = 42;
  /// objects may come in any order in later epochs: the longest answer of all orders
  bool any_order = false;
  /// ≥ 0: how far a shown coordinate may lie from the true one, in formats whose lengths vary with
  /// coordinates; more digits are longer
  int coord_slack_bins = 0;
  int num_new_vertices = 0;  ///< ≥ 0: that augmentation may add to an outline
  PatchOptions patches;
  int num_threads = 1;  ///< ≥ 1; changes no result
};

/// The lengths of all samples, in their order: those of epoch 0, or with any_order those of the
/// longest order of their objects. They follow from the texts and the image sizes in the records;
/// no image is read.
/// @param on_progress  takes the number of samples measured so far, finally all; called on this
/// thread, may throw Interrupted Cost: the tokenizer on every answer, 16 to 27 microseconds for
/// some 800 tokens, divided by the threads; with any_order twice that on samples with boxes and
/// outlines.
std::vector<SampleLength> measure_samples(const Dataset& dataset, const PromptEncoder& prompts,
                                          const AnswerFormat& format, const MeasureOptions& options,
                                          const std::function<void(int64_t)>& on_progress);

}  // namespace rematch
