#pragma once
#include <vector>

#include "tools/draw/canvas.h"
#include "tools/report/score_table.h"

namespace rematch {

/// Draws `num_rows` evenly spaced samples, one per line of the picture: the truth, then the answers
/// of every evaluation with samples. Answers are blue for a match with the right name, orange for a
/// match with another name, red without a match; there is a legend.
/// @throws UserError (data) when no evaluation has samples, or as read_evaluated_samples
Canvas draw_answer_sheet(const std::vector<NamedEvaluation>& evaluations, int num_rows);

}  // namespace rematch
