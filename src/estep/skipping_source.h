#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "estep/segment_source.h"
#include "vision/patches.h"
#include "vision/pixel_store.h"

namespace rematch {

/// A source that leaves out the samples of a window whose images cannot be used
/// (`data.on_bad_sample: skip`). It decodes the images of a window before the window is built, so
/// that a bad one costs neither a rollout nor a step. Over several ranks the micro-batches that
/// keep a sample are dealt anew, so that all ranks together build the window of one process.
class SkippingSource : public SegmentSource {
 public:
  /// Told about every sample that is left out, each time. @param error  of its first image that
  /// cannot be used
  using OnSkip = std::function<void(const Sample& sample, const UserError& error)>;
  /// The place of this process among the ranks.
  struct Ranks {
    int rank = 0;
    /// Calls `mine` on every rank, so that all go on or none. @return what they gave, by rank
    std::function<std::vector<std::string>(const std::function<std::string()>& mine)> gather;
  };

  /// `data`, `pixels` outlive the source.
  SkippingSource(std::unique_ptr<SegmentSource> source, const Dataset& data, PixelStore& pixels,
                 const PatchOptions& patches, OnSkip on_skip, Ranks ranks)
      : source_(std::move(source)),
        data_(data),
        pixels_(pixels),
        patches_(patches),
        on_skip_(std::move(on_skip)),
        ranks_(std::move(ranks)) {}

  /// @throws BadSample (data) when no sample of the window is left on any rank; and as the source
  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  bool is_good(int64_t sample_idx) const;
  std::string good_samples(const WindowPlan& plan) const;

  std::unique_ptr<SegmentSource> source_;
  const Dataset& data_;
  PixelStore& pixels_;
  const PatchOptions patches_;
  OnSkip on_skip_;
  Ranks ranks_;
};

}  // namespace rematch
