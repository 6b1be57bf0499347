#pragma once
#include <cstdint>

namespace rematch::kernels {

/// Number format of stored weights, keys and values; computation is in float32.
enum class Storage {
  kFloat,     ///< float32
  kBfloat16,  ///< the upper half of a float32, in a uint16_t
};

/// Bytes of one value.
constexpr int64_t storage_bytes(Storage storage) { return storage == Storage::kFloat ? 4 : 2; }

/// Half-open range of indices.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// One worker's share of `size` items: contiguous, in multiples of `unit`, and otherwise as even as
/// possible.
constexpr Range share(int64_t size, int64_t unit, int worker, int num_workers) {
  const int64_t units = (size + unit - 1) / unit;
  const int64_t begin = units * worker / num_workers * unit,
                end = units * (worker + 1) / num_workers * unit;
  return {begin < size ? begin : size, end < size ? end : size};
}

/// Rows of floats.
struct Rows {
  float* data = nullptr;
  int64_t stride = 0;  ///< floats from one row to the next
  float* row(int64_t i) const { return data + i * stride; }
};

/// Rows of floats that are only read.
struct ConstRows {
  const float* data = nullptr;
  int64_t stride = 0;
  ConstRows() = default;
  ConstRows(const float* values, int64_t floats_a_row) : data(values), stride(floats_a_row) {}
  ConstRows(const Rows& rows) : data(rows.data), stride(rows.stride) {}  // NOLINT: meant to convert
  const float* row(int64_t i) const { return data + i * stride; }
};

/// The softmax of a row is e^(x − largest) / sum.
struct SoftmaxSum {
  float largest = 0;
  double sum = 0;
  bool is_finite = true;  ///< all values are; if false, the other fields are undefined
};

}  // namespace rematch::kernels
