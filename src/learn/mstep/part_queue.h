#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "learn/mstep/gradient_bucket.h"

namespace rematch {

/// Values that one owner has yet to get, in the order in which their gradients arrive. Messages
/// take them from the front.
class PartQueue {
 public:
  void add(GradientParcel& parcel) {
    parts_.push_back({&parcel, 0, parcel.parameter.numel()});
    num_values_ += parcel.parameter.numel();
  }
  bool is_empty() const { return parts_.empty(); }
  int64_t num_values() const { return num_values_; }

  /// Moves at most `most_values` (≥ 1) to a message, and notes in their parcels which it is.
  /// @param bucket_idx  of the message; consecutive calls have consecutive messages
  void take(int64_t most_values, size_t bucket_idx, std::vector<ParcelPart>& message) {
    while (!parts_.empty() && (most_values > 0 || parts_.front().count == 0)) {
      ParcelPart& front = parts_.front();
      const int64_t count = std::min(front.count, most_values);
      if (front.begin == 0) front.parcel->first_bucket = bucket_idx;
      front.parcel->end_bucket = bucket_idx + 1;
      message.push_back({front.parcel, front.begin, count});
      front.begin += count;
      front.count -= count;
      most_values -= count;
      num_values_ -= count;
      if (front.count == 0) parts_.pop_front();
    }
  }

 private:
  std::deque<ParcelPart> parts_;
  int64_t num_values_ = 0;
};

}  // namespace rematch
