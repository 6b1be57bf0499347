#pragma once
#include <vector>

#include "base/json.h"
#include "report/run_data.h"
#include "report/score_table.h"

namespace rematch {

/// The start of a report: {"sentence", "about", "numbers": [{"label", "before", "now", "change"},
/// …]}. At most three numbers; `change` is 1 when it became better, −1 worse, 0 neither. "before"
/// is empty where there is nothing to compare with. Without an evaluation it is about the loss.
Json collect_headline(const std::vector<RunData>& runs,
                      const std::vector<NamedEvaluation>& evaluations);

/// What costs an evaluation most, such as "wrong names"; empty when nothing stands out or its
/// scores do not tell.
std::string main_fault(const EvaluationFile& evaluation);

}  // namespace rematch
