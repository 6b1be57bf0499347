#pragma once
#include <cstddef>

#include "base/json.h"
#include "tools/report/run_data.h"

namespace rematch {

/// Number and size of the images in a report.
struct GalleryOptions {
  int num_worst = 12;  ///< images with the lowest label F1
  /// images evenly spaced over the data
  int num_even = 12;
  int long_side_px = 360;  ///< largest side of an image
  /// most bytes of all images together; further images are left out
  size_t max_bytes = size_t{3} * 1024 * 1024;
};

/// Samples of an evaluation with their images, truths and answers: {"has_before", "groups":
/// [{"title", "samples"}, …]}, worst first. Images that cannot be read are left out.
/// @param before  an evaluation of the same data to compare with; may be null
/// @throws UserError when the samples cannot be read
Json collect_gallery(const EvaluationFile& now, const EvaluationFile* before,
                     const GalleryOptions& options);

}  // namespace rematch
