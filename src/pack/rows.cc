#include "pack/rows.h"

namespace rematch {

std::vector<PackedRow> rows_of_micro_batches(std::vector<std::vector<std::shared_ptr<const Segment>>> micro_batches) {
  std::vector<PackedRow> rows;
  for (auto& segments : micro_batches) {
    if (!segments.empty()) rows.push_back({std::move(segments)});
  }
  return rows;
}

}  // namespace rematch
