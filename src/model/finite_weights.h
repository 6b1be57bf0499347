#pragma once
#include <vector>

#include "model/model.h"

namespace rematch {

/// Refuses weights with a NaN or an infinity in them: a checkpoint of such weights would look
/// finished and be worth nothing.
/// @throws UserError (data) naming the first such parameter and how many there are. Cost: one pass
/// over the weights
void check_finite_weights(const std::vector<NamedParameter>& parameters);

}  // namespace rematch
