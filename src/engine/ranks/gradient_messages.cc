#include "engine/ranks/gradient_messages.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace rematch {
namespace {

// Bytes that a message holds for an owner even where there are many: smaller ones cost more time.
constexpr int64_t kSmallestShare = int64_t{4} << 20;

/// Values that one owner has yet to get, in the order in which their gradients arrive. Messages
/// take them from the front.
class PartQueue {
 public:
  void add(GradientParcel& parcel) {
    parts_.push_back({&parcel, 0, parcel.parameter.numel(), parcel.owner});
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
      message.push_back({front.parcel, front.begin, count, front.adder});
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

/// Divides the parts of a message among all ranks, which add them for their owners.
std::vector<ParcelPart> lend(const std::vector<ParcelPart>& parts, int num_ranks) {
  int64_t num_values = 0, begin = 0;
  for (const ParcelPart& part : parts) num_values += part.count;
  const int64_t share = num_values / num_ranks + 1;
  std::vector<ParcelPart> lent;
  for (ParcelPart rest : parts) {
    do {
      ParcelPart& part = lent.emplace_back(rest);
      part.adder = static_cast<int>(begin / share);
      part.count = std::min(rest.count, share * (part.adder + 1) - begin);
      begin += part.count;
      rest.begin += part.count;
      rest.count -= part.count;
    } while (rest.count > 0);
  }
  return lent;
}

}  // namespace

void assign_owners(std::vector<GradientParcel>& parcels, int num_ranks) {
  int64_t total = 0;
  for (const GradientParcel& parcel : parcels) total += parcel.parameter.numel();
  const auto size_of = [&](size_t i) { return parcels[i].parameter.numel(); };
  const auto is_large = [&](size_t i) { return size_of(i) > total / (2 * num_ranks); };
  std::vector<size_t> order(parcels.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    if (!is_large(a) || !is_large(b)) return is_large(a) && !is_large(b);
    return size_of(a) > size_of(b);
  });
  std::vector<int64_t> load(static_cast<size_t>(num_ranks), 0);
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(load);
    parcels[i].owner = static_cast<int>(least - load.begin());
    *least += size_of(i);
  }
}

std::vector<std::vector<ParcelPart>> divide_into_messages(
    const std::vector<GradientParcel*>& arriving, int num_ranks, int64_t message_bytes) {
  constexpr auto kValueBytes = static_cast<int64_t>(sizeof(float));
  const int64_t share_bytes =
      std::max(message_bytes / num_ranks, std::min(message_bytes, kSmallestShare));
  const int64_t share = std::max<int64_t>(1, share_bytes / kValueBytes),
                most = message_bytes / kValueBytes;
  std::vector<std::vector<ParcelPart>> messages;
  std::vector<PartQueue> queues(static_cast<size_t>(num_ranks));
  const auto send = [&](int64_t most_values) -> std::vector<ParcelPart>& {
    std::vector<ParcelPart> parts;
    for (PartQueue& queue : queues) queue.take(most_values, messages.size(), parts);
    return messages.emplace_back(std::move(parts));
  };
  const auto has_share = [&](const PartQueue& queue) { return queue.num_values() >= share; };
  for (GradientParcel* parcel : arriving) {
    queues[parcel->owner].add(*parcel);
    while (4 * std::ranges::count_if(queues, has_share) >= 3 * std::ssize(queues)) send(share);
  }
  // Between two ranks it gains nothing: the owner would get as many bytes.
  const bool is_lent =
      num_ranks > 2 && std::ranges::max(queues, {}, &PartQueue::num_values).num_values() > most;
  while (const auto num_left = std::ranges::count(queues, false, &PartQueue::is_empty)) {
    std::vector<ParcelPart>& parts = send(std::max(share, most / num_left));
    if (is_lent) parts = lend(parts, num_ranks);
  }
  return messages;
}

}  // namespace rematch
