#pragma once
#include <cstddef>
#include <string>

#include "report/run_data.h"

namespace rematch {

/// How many images a report shows, and how large.
struct GalleryOptions {
  int num_worst = 12;  ///< with the lowest label F1
  /// evenly spaced over the data, whatever their score
  int num_even = 12;
  int long_side_px = 360;  ///< of an image
  /// of all images together; those that would exceed it are left out
  size_t max_bytes = size_t{3} * 1024 * 1024;
};

/// Samples of an evaluation with truth and answers drawn over their images, worst first. @param
/// before  an evaluation of the same data to slide over to; may be null. Images that cannot be read
/// are left out. @throws UserError when the samples cannot be read
std::string gallery_html(const EvaluationFile& now, const EvaluationFile* before,
                         const GalleryOptions& options);

}  // namespace rematch
