#include "estep/skipping_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rematch {

bool SkippingSource::is_good(int64_t sample_idx) const {
  const Sample& sample = data_.samples()[static_cast<size_t>(sample_idx)];
  try {
    for (const ImageRef& image : image_refs(sample, patches_)) pixels_.get(image);
    return true;
  } catch (const UserError& error) {
    on_skip_(sample, error);
    return false;
  }
}

WindowSegments SkippingSource::build(const WindowPlan& plan, MetricsBag& metrics) {
  std::vector<ImageRef> images;
  for (const auto& micro_batch : plan.micro_batches) {
    for (const int64_t index : micro_batch) {
      for (ImageRef& image : image_refs(data_.samples()[static_cast<size_t>(index)], patches_)) images.push_back(std::move(image));
    }
  }
  pixels_.prefetch(images);
  WindowPlan kept = plan;
  size_t num_skipped = 0, num_left = 0;
  for (auto& micro_batch : kept.micro_batches) {
    num_skipped += std::erase_if(micro_batch, [this](int64_t index) { return !is_good(index); });
    num_left += micro_batch.size();
  }
  metrics.add("data/skipped_samples", static_cast<double>(num_skipped));
  if (num_left == 0 && num_skipped > 0) {
    throw UserError(ErrorKind::kData, {.error = "no sample of a window can be used",
                                       .where = data_.path(),
                                       .what = fmt::format("all {} samples of window {} are bad", num_skipped, plan.window_idx),
                                       .fix = "check that the images are still there (is a disk unmounted?), then resume"});
  }
  return source_->build(kept, metrics);
}

}  // namespace rematch
