#pragma once
#include <memory>
#include <vector>

#include "flow/segment.h"

namespace rematch {

/// Packing off: each micro-batch's segments side by side in one row, without a cap. Empty micro-batches give no row.
/// @param micro_batches  segments of a window by micro-batch, in sample order
std::vector<PackedRow> rows_of_micro_batches(std::vector<std::vector<std::shared_ptr<const Segment>>> micro_batches);

}  // namespace rematch
