#pragma once
#include <memory>

#include "learn/data/order_score.h"
#include "program/assembly/job.h"

namespace rematch {

/// Lets the model answer up to 300 training pictures, evenly spaced over the records, and finds the
/// order of its answers (`custom.object_ordering: own`). The ranks share the pictures and get the
/// same order. Rank 0 draws some of its answers in `order.png` in the directory of the run. Every
/// rank calls it, inside a phase.
/// @throws UserError as start_engine() and score_batches(); Interrupted
OrderScore learn_order(const Job& job, const std::shared_ptr<Model>& model);

}  // namespace rematch
