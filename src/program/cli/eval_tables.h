#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/observe/terminal.h"

namespace rematch {

/// Prints the scores of an evaluation in at most 80 columns: the rows of `rematch compare`, or all
/// of them with the largest classes and the object counts.
/// @param values  scores by name.
/// @param result  holds the tables `per_class` and `per_count` when answers were rolled out
void print_scores(const std::vector<std::pair<std::string, double>>& values, const Json& result,
                  bool all_scores, Terminal& terminal);

}  // namespace rematch
