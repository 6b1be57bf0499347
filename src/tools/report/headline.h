#pragma once
#include <vector>

#include "base/json.h"
#include "tools/report/run_data.h"
#include "tools/report/score_table.h"

namespace rematch {

/// The start of a report: {"sentence", "about", "numbers": [{"label", "before", "now", "change"},
/// …]}. At most three numbers; `change` is 1 for better, −1 for worse, 0 otherwise. "before" is
/// empty without a comparison. Without an evaluation the headline is about the loss.
Json collect_headline(const std::vector<RunData>& runs,
                      const std::vector<NamedEvaluation>& evaluations);

}  // namespace rematch
