#pragma once
#include <cstdint>
#include <memory>

#include "base/flow/segment.h"
#include "learn/data/windows.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/rollout_scorer.h"
#include "learn/estep/teach/truth_segment.h"

namespace rematch {

/// Builds segments of the full ground-truth answer (BEHAVIOUR 14), for stage 1, windows that do not
/// roll out, and teacher-forced evaluation.
class TruthSegments {
 public:
  /// Limits in tokens; 0 = no cap.
  struct Caps {
    int segment_tokens = 0;  ///< of a segment (`global_max_length`)
    int row_tokens = 0;      ///< of a micro-batch, when the stream is packed into rows
  };
  /// All parts must outlive the object.
  TruthSegments(const Dataset& dataset, const PromptEncoder& prompts, const AnswerFormat& format,
                PixelStore& pixels, RolloutScorer::Options options, Caps caps,
                InputNoise noise = {});

  /// Builds the segments of a window; starts loading their images.
  /// @throws UserError naming the sample
  WindowSegments build(const WindowPlan& plan) const;

  /// Builds the segment of one sample.
  /// @param sample_idx  into dataset.samples()
  /// @throws UserError (data) when it is longer than caps.segment_tokens
  SegmentPtr segment_at(int64_t sample_idx, int64_t epoch) const;

  /// Number of tokens of segment_at(sample_idx, epoch). Reads no image. Throws as segment_at().
  /// Cost: the tokenizer on the answer.
  int encoded_len(int64_t sample_idx, int64_t epoch) const;

  /// True when the length of a sample may differ between epochs. The order of objects matters
  /// because a tokenizer may merge the brackets that close the answer (`"]}}` after a bbox_2d,
  /// `"]]}}` after a poly) in another way than those before the next object.
  bool lengths_vary_by_epoch() const {
    return options_.ordering.kind == ObjectOrdering::kRandom || options_.augment.moves_objects() ||
           options_.augment.absent_share > 0 ||
           (noise_.sigma_bins > 0 && format_.lengths_vary_with_coords());
  }

 private:
  const Dataset& dataset_;
  const PromptEncoder& prompts_;
  const AnswerFormat& format_;
  PixelStore& pixels_;
  RolloutScorer::Options options_;
  Caps caps_;
  InputNoise noise_;
};

}  // namespace rematch
