#include "estep/skipping_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/out_of_resources.h"
#include "data/bad_sample.h"

namespace rematch {

bool SkippingSource::is_good(int64_t sample_idx) const {
  const Sample& sample = data_.samples()[static_cast<size_t>(sample_idx)];
  try {
    for (const ImageRef& image : image_refs(sample, patches_)) pixels_.get(image);
    return true;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    on_skip_(sample, error);
    return false;
  }
}

// The micro-batches without their bad samples, emptied ones too, as text for the other ranks.
std::string SkippingSource::good_samples(const WindowPlan& plan) const {
  std::vector<ImageRef> images;
  for (const auto& micro_batch : plan.micro_batches) {
    for (const int64_t index : micro_batch) {
      for (ImageRef& image : image_refs(data_.samples()[static_cast<size_t>(index)], patches_))
        images.push_back(std::move(image));
    }
  }
  pixels_.prefetch(images);
  std::vector<std::vector<int64_t>> kept = plan.micro_batches;
  size_t num_skipped = 0;
  for (auto& micro_batch : kept)
    num_skipped += std::erase_if(micro_batch, [this](int64_t index) { return !is_good(index); });
  return Json{{"skipped", num_skipped}, {"micro_batches", kept}}.dump();
}

WindowSegments SkippingSource::build(const WindowPlan& plan, MetricsBag& metrics) {
  std::vector<std::vector<std::vector<int64_t>>> by_rank;
  size_t num_skipped = 0, num_turns = 0;
  for (const std::string& text : ranks_.gather([&] { return good_samples(plan); })) {
    const Json share = Json::parse(text);
    num_skipped += share["skipped"].get<size_t>();
    by_rank.push_back(share["micro_batches"].get<std::vector<std::vector<int64_t>>>());
    num_turns = std::max(num_turns, by_rank.back().size());
  }
  WindowPlan kept = plan;
  kept.micro_batches.clear();
  size_t place = 0;  // in the window of all ranks
  for (size_t turn = 0; turn < num_turns; ++turn) {
    for (auto& of_rank : by_rank) {
      if (turn >= of_rank.size() || of_rank[turn].empty()) continue;
      if (place++ % by_rank.size() == static_cast<size_t>(ranks_.rank))
        kept.micro_batches.push_back(std::move(of_rank[turn]));
    }
  }
  if (ranks_.rank == 0) metrics.add("data/skipped_samples", static_cast<double>(num_skipped));
  if (place == 0 && num_skipped > 0) {
    throw BadSample(
        ErrorKind::kData,
        {.error = "no sample of a window can be used",
         .where = data_.path(),
         .what = fmt::format("all {} samples of window {} are bad", num_skipped, plan.window_idx),
         .fix = "check that the images are still there (is a disk unmounted?), then resume"});
  }
  return source_->build(kept, metrics);
}

}  // namespace rematch
