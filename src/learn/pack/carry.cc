#include "learn/pack/carry.h"

#include <fmt/core.h>

#include <iterator>

namespace rematch {
namespace {

std::vector<int> get_lengths(const Segments& segments) {
  std::vector<int> lengths;
  for (const auto& segment : segments) lengths.push_back(segment->encoded_len());
  return lengths;
}

}  // namespace

void check_insertion(std::span<const int> encoded_lens,
                     const std::function<std::string(size_t)>& get_name, size_t num_waiting,
                     const PackingLimits& limits) {
  for (size_t i = 0; i < encoded_lens.size(); ++i) {
    if (encoded_lens[i] <= limits.packing_length) continue;
    throw PackingOverflow(
        ErrorKind::kData,
        {.error = "a segment is longer than a packed row",
         .where = get_name(i),
         .what = fmt::format("encoded_len {}, packing length {} (global_max_length)",
                             encoded_lens[i], limits.packing_length),
         .fix = "raise `global_max_length`, lower `max_new_tokens`, or set `training.packing: "
                "false`; a segment is never split"});
  }
  const size_t num_after = num_waiting + encoded_lens.size();
  if (limits.packing_buffer <= 0 || num_after <= static_cast<size_t>(limits.packing_buffer)) return;
  throw PackingOverflow(
      ErrorKind::kConfig,
      {.error = "the packing carry buffer would overflow",
       .where = "training.packing_buffer",
       .what = fmt::format("{} segments waiting and {} new: {} exceed packing_buffer {}",
                           num_waiting, encoded_lens.size(), num_after, limits.packing_buffer),
       .fix = "lower `training.per_device_train_batch_size`, raise `training.packing_buffer` or "
              "`global_max_length`, or set `post_rollout_pack_scope: window`, which trains as many "
              "rows as a window needs"});
}

void CarryBuffer::insert(Segments segments) {
  const auto get_name = [&](size_t i) {
    return sample_name(segments[i]->sample_id, segments[i]->where);
  };
  check_insertion(get_lengths(segments), get_name, waiting_.size(), limits_);
  std::ranges::move(segments, std::back_inserter(waiting_));
}

PackedRow CarryBuffer::take_row(PackingSelector selector) {
  REMATCH_CHECK(!waiting_.empty(), "no segment is waiting");
  const Selection selection =
      select_segments(selector, get_lengths(waiting_), limits_.packing_length);
  return {take_chosen(selection.indices, waiting_)};
}

}  // namespace rematch
