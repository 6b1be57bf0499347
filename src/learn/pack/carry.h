#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "base/keeps_state.h"
#include "learn/pack/select.h"

namespace rematch {

/// Segments that do not fit in a row or in the carry buffer. The run stops and saves the state
/// before their window.
struct PackingOverflow : KeepingError {
  using KeepingError::KeepingError;
};

/// Limits of a row and of the carry buffer.
struct PackingLimits {
  int packing_length = 0;  ///< tokens of a row (`global_max_length`), ≥ 1
  int packing_buffer = 0;  ///< most waiting segments; 0 = no limit (scope `window`)
};

/// Checks new segments before any is inserted: each must fit a row, and the buffer must hold all.
/// @param encoded_lens  tokens of each new segment
/// @param get_name      name of the i-th new segment for errors, e.g. its sample
/// @param num_waiting   segments already waiting
/// @throws PackingOverflow (data) for a segment longer than a row; (config) if num_waiting + new
/// segments > packing_buffer (equal is legal)
/// @source docs/contract/openspec/specs/rollout-matching-sft/spec.md, BEHAVIOUR 9.1
void check_insertion(std::span<const int> encoded_lens,
                     const std::function<std::string(size_t)>& get_name, size_t num_waiting,
                     const PackingLimits& limits);

/// The carry buffer of a rank: segments that wait for a row, in order of insertion. Segments are
/// never split, reordered or lost.
class CarryBuffer {
 public:
  explicit CarryBuffer(PackingLimits limits) : limits_(limits) {}

  /// Inserts all segments or, on an error, none.
  /// @throws as check_insertion
  void insert(Segments segments);

  /// Removes and returns the next row: the selector's choice, oldest first. The buffer must not be
  /// empty.
  PackedRow take_row(PackingSelector selector);

  /// Waiting segments, oldest first.
  const Segments& waiting() const { return waiting_; }
  bool empty() const { return waiting_.empty(); }

 private:
  PackingLimits limits_;
  Segments waiting_;
};

}  // namespace rematch
