#pragma once
#include "base/json.h"
#include "tools/report/run_data.h"

namespace rematch {

/// Data of an evaluation about the scores of objects: {"ranking": "score" or "order", "curves":
/// [{"name", "truths", "precision": at recall 0, 0.01, …, 1}, …], "confusion": a table with its
/// header or [], "calibration": {"error", "bins": [{"count", "score", "precision"}, …]} or null};
/// null for evaluations of older versions.
/// @throws UserError (data) when the file is damaged
Json collect_confidence(const EvaluationFile& evaluation);

}  // namespace rematch
