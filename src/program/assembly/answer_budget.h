#pragma once
#include <optional>
#include <string>

#include "base/settings/settings.h"
#include "learn/data/dataset.h"
#include "program/assembly/open.h"

namespace rematch {

/// Compares the longest true answer of a data set with `max_new_tokens`, which ends rollouts,
/// evaluations and, through rematch_prompt.json of the checkpoints, `predict`. Reads no image.
/// @return a warning that names a value that holds it, a quarter to spare; empty if it fits
std::string answer_budget_warning(const Dataset& data, const Settings& settings,
                                  const ModelFiles& files);

}  // namespace rematch
