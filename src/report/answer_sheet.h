#pragma once
#include <vector>

#include "draw/canvas.h"
#include "report/score_table.h"

namespace rematch {

/// A picture with one row for each of `num_rows` samples, evenly spaced: the truth, then the
/// answers of every evaluation that has samples. Answers are blue where they match an object of the
/// same name, orange where the name is another, red where they match nothing; a legend says so.
/// @throws UserError (data) when no evaluation has samples, or as read_judged_samples
Canvas draw_answer_sheet(const std::vector<NamedEvaluation>& evaluations, int num_rows);

}  // namespace rematch
