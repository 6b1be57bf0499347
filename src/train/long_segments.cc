#include "train/long_segments.h"

#include <fmt/core.h>

#include <array>

#include "data/bad_sample.h"
#include "ranks/phase.h"

namespace rematch {

void LongSegments::leave_out(WindowSegments& segments, MetricsBag& metrics) const {
  std::array<int64_t, 2> counts{};  // left out, kept; on all ranks
  together(group_, [&] {
    for (auto& of_micro_batch : segments) {
      counts[0] += static_cast<int64_t>(std::erase_if(
          of_micro_batch, [this](const auto& segment) { return is_long_(*segment); }));
      counts[1] += std::ssize(of_micro_batch);
    }
  });
  group_.all_reduce(counts);
  if (counts[0] == 0) return;
  if (group_.rank() == 0) metrics.add("data/skipped_samples", static_cast<double>(counts[0]));
  if (counts[1] > 0) return;
  throw BadSample(ErrorKind::kData,
                  {.error = "no segment of a window can be used",
                   .where = "global_max_length",
                   .what = fmt::format("all {} segments are longer than it", counts[0]),
                   .fix = "raise `global_max_length` or lower `max_new_tokens`"});
}

}  // namespace rematch
