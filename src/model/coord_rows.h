#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace rematch {

/// Whether rows are as `add-coord-tokens` leaves them, or all alike: hardly spread around their
/// mean, compared with the other rows of the table. Training spreads them; such rows cannot tell
/// one coordinate from another.
/// @param table_VH  embedding or head. @param token_ids  of the rows, at least one. Cost: one pass
/// over some thousand rows
bool rows_look_untrained(const at::Tensor& table_VH, const std::vector<int64_t>& token_ids);

}  // namespace rematch
