#pragma once
#include <functional>
#include <memory>

#include "base/error.h"
#include "data/dataset.h"
#include "estep/segment_source.h"
#include "vision/patches.h"
#include "vision/pixel_store.h"

namespace rematch {

/// A source that leaves out the samples of a window whose images cannot be used (`data.on_bad_sample: skip`). It decodes the images of a
/// window before the window is built, so that a bad one costs neither a rollout nor a step.
class SkippingSource : public SegmentSource {
 public:
  /// Told about every sample that is left out, each time. @param error  of its first image that cannot be used
  using OnSkip = std::function<void(const Sample& sample, const UserError& error)>;

  /// `data`, `pixels` outlive the source.
  SkippingSource(std::unique_ptr<SegmentSource> source, const Dataset& data, PixelStore& pixels, const PatchOptions& patches,
                 OnSkip on_skip)
      : source_(std::move(source)), data_(data), pixels_(pixels), patches_(patches), on_skip_(std::move(on_skip)) {}

  /// @throws UserError (data) when no sample of the window is left; and as the source
  WindowSegments build(const WindowPlan& plan, MetricsBag& metrics) override;

 private:
  bool is_good(int64_t sample_idx) const;

  std::unique_ptr<SegmentSource> source_;
  const Dataset& data_;
  PixelStore& pixels_;
  const PatchOptions patches_;
  OnSkip on_skip_;
};

}  // namespace rematch
