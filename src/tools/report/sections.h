#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/report/run_data.h"
#include "tools/report/score_table.h"

// The parts of a report's page (report_html).
namespace rematch {

/// The start of a report: {"sentence", "about", "numbers": [{"label", "before", "now", "change"},
/// …]}. At most three numbers; `change` is 1 for better, −1 for worse, 0 otherwise. "before" is
/// empty without a comparison. Without an evaluation the headline is about the loss.
Json collect_headline(const std::vector<RunData>& runs,
                      const std::vector<NamedEvaluation>& evaluations);

/// The curves of the runs' logs: {"names": name of each run, null without a log, "charts":
/// [{"title", "log": true for a logarithmic axis, "runs": [{"lines": [[[x, y], …], …], "dots":
/// [[[x, y], …], …]}, …]}, …]}, with one chart for each metric of any run. Lines are training
/// steps, dots evaluations. The dots of one list are over the same set, without a restart between
/// them, and may be connected.
Json collect_curves(const std::vector<RunData>& runs);

/// Data of an evaluation about the scores of objects: {"ranking": "score" or "order", "curves":
/// [{"name", "truths", "precision": at recall 0, 0.01, …, 1}, …], "confusion": a table with its
/// header or [], "calibration": {"error", "bins": [{"count", "score", "precision"}, …]} or null};
/// null for evaluations of older versions.
/// @throws UserError (data) when the file is damaged
Json collect_confidence(const EvaluationFile& evaluation);

/// Builds the report's page from report.html, report.css, the scripts and the data, as one file
/// that loads nothing. Strings in the data cannot close the script element.
std::string fill_page(const Json& data);

}  // namespace rematch
