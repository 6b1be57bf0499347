#pragma once
#include <cstddef>

#include "base/json.h"
#include "report/run_data.h"

namespace rematch {

/// How many images a report shows, and how large.
struct GalleryOptions {
  int num_worst = 12;  ///< with the lowest label F1
  /// evenly spaced over the data, whatever their score
  int num_even = 12;
  int long_side_px = 360;  ///< of an image at most
  /// of all images together; those that would exceed it are left out
  size_t max_bytes = size_t{3} * 1024 * 1024;
};

/// Samples of an evaluation with their images, truths and answers: {"has_before", "groups":
/// [{"title", "samples"}, …]}, worst first. Images that cannot be read are left out.
/// @param before  an evaluation of the same data to compare with; may be null
/// @throws UserError when the samples cannot be read
Json collect_gallery(const EvaluationFile& now, const EvaluationFile* before,
                     const GalleryOptions& options);

}  // namespace rematch
