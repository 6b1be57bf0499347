#pragma once
#include <string>
#include <vector>

#include "tools/report/gallery.h"
#include "tools/report/run_data.h"

namespace rematch {

/// Makes a self-contained HTML page about runs: training data, score table, curves,
/// time of a step, scores by class and by number of objects, a gallery, the effective
/// configuration. The first evaluation is "before", the last "after".
/// @throws UserError when samples of an evaluation cannot be read
std::string report_html(const std::vector<RunData>& runs, const GalleryOptions& gallery);

}  // namespace rematch
