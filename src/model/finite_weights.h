#pragma once
#include <vector>

#include "model/model.h"

namespace rematch {

/// Refuses weights with NaN or infinite values, which must not be saved as a checkpoint.
/// @throws UserError (data) naming the first such parameter and their number. Cost: one pass over
/// the weights
void check_finite_weights(const std::vector<NamedParameter>& parameters);

}  // namespace rematch
