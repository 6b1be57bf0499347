#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// Returns true if the rows have little spread around their mean, compared with the other rows of
/// the table: they are equal or as `add-coord-tokens` wrote them, so they cannot distinguish
/// coordinates. Training spreads them.
/// @param table_VH  embedding or head.
/// @param token_ids  of the rows, at least one. Cost: one pass over a few thousand rows
bool rows_look_untrained(const at::Tensor& table_VH, const std::vector<int64_t>& token_ids);

}  // namespace rematch
