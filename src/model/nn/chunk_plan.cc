#include "model/nn/chunk_plan.h"

#include <algorithm>
#include <numeric>

#include "model/nn/upload.h"

namespace rematch {
namespace {

int64_t num_chunks_of(int64_t len) { return (len + ChunkPlan::kChunk - 1) / ChunkPlan::kChunk; }

}  // namespace

ChunkPlan::ChunkPlan(const std::vector<int64_t>& lens, at::Device device) {
  std::vector<int64_t> first_row(lens.size());
  std::exclusive_scan(lens.begin(), lens.end(), first_row.begin(), int64_t{0});
  const int64_t num_rows = std::accumulate(lens.begin(), lens.end(), int64_t{0});
  for (size_t s = 0; s < lens.size(); ++s) {
    if (lens[s] > 0) segment_order_.push_back(static_cast<int64_t>(s));
  }
  const auto len_of = [&](int64_t segment) { return lens[segment]; };
  std::ranges::stable_sort(segment_order_, [&](int64_t a, int64_t b) {
    return num_chunks_of(len_of(a)) > num_chunks_of(len_of(b));
  });
  const int64_t num_steps = segment_order_.empty() ? 0 : num_chunks_of(len_of(segment_order_[0]));
  std::vector<int64_t> row_of_slot, slot_of_row(static_cast<size_t>(num_rows)), is_padding;
  for (int64_t step = 0; step < num_steps; ++step) {
    for (const int64_t segment : segment_order_) {
      if (num_chunks_of(len_of(segment)) <= step) break;
      const int64_t first = first_row[segment];
      for (int64_t i = step * kChunk; i < (step + 1) * kChunk; ++i) {
        const int64_t row = first + std::min(i, len_of(segment) - 1);
        if (i < len_of(segment)) slot_of_row[row] = std::ssize(row_of_slot);
        row_of_slot.push_back(row);
        is_padding.push_back(i >= len_of(segment));
      }
    }
    begins_.push_back(std::ssize(row_of_slot) / kChunk);
  }
  const bool is_padded = std::ssize(row_of_slot) > num_rows;
  if (is_padded || !std::ranges::is_sorted(row_of_slot)) {
    row_of_slot_ = upload_index(row_of_slot, device);
    slot_of_row_ = upload_index(slot_of_row, device);
  }
  if (is_padded) is_padding_ = upload_index(is_padding, device).to(at::kBool);
}

at::Tensor ChunkPlan::to_chunks(const at::Tensor& rows, int64_t first_chunk, int64_t count) const {
  const int64_t first = first_chunk * kChunk, num_slots = count * kChunk;
  const at::Tensor slots = row_of_slot_.defined()
                               ? rows.index_select(0, row_of_slot_.narrow(0, first, num_slots))
                               : rows.narrow(0, first, num_slots);
  return slots.unflatten(0, {count, kChunk});
}

at::Tensor ChunkPlan::to_zeroed_chunks(const at::Tensor& rows, int64_t first_chunk,
                                       int64_t count) const {
  const at::Tensor chunks = to_chunks(rows, first_chunk, count);
  if (!is_padding_.defined()) return chunks;
  std::vector<int64_t> shape(static_cast<size_t>(chunks.dim()), 1);
  shape[0] = count;
  shape[1] = kChunk;
  return chunks.masked_fill(is_padding_.narrow(0, first_chunk * kChunk, count * kChunk).view(shape),
                            0);
}

at::Tensor ChunkPlan::from_chunks(const at::Tensor& chunks) const {
  return slot_of_row_.defined() ? chunks.index_select(0, slot_of_row_) : chunks;
}

}  // namespace rematch
