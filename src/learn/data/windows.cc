#include "learn/data/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/option_range.h"
#include "base/random.h"

namespace rematch {
namespace {

// Separates this random stream from others with the same seed and epoch.
constexpr uint64_t kEpochStream = 0x65706F6368ULL;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

WindowStream::WindowStream(WindowOptions options) : options_(std::move(options)) {
  const int64_t batch_size = options_.batches.per_device_train_batch_size;
  const int64_t num_steps = options_.batches.gradient_accumulation_steps;
  if (options_.num_samples < 1)
    refuse_value("custom.train_jsonl", options_.num_samples, "a file of at least one record");
  if (batch_size < 1) refuse_value("training.per_device_train_batch_size", batch_size, "1 or more");
  if (num_steps < 1) refuse_value("training.gradient_accumulation_steps", num_steps, "1 or more");
  REMATCH_CHECK(options_.world_size >= 1 && options_.rank >= 0 &&
                options_.rank < options_.world_size);
  window_size_ = num_steps * options_.world_size * (options_.cut ? batch_size : 1);
  if (!options_.cut && options_.batches.drop_last && options_.num_samples < batch_size)
    refuse_value("training.per_device_train_batch_size", batch_size,
                 "at most the number of samples, or training.dataloader_drop_last: false");
}

std::vector<int64_t> WindowStream::draw_order(int64_t epoch) const {
  const uint64_t key = random_key(kEpochStream, options_.seed, epoch);
  std::vector<int64_t> order = random_permutation(key, options_.num_samples);
  if (!options_.draw) return order;
  const std::vector<int64_t> drawn = options_.draw(epoch);
  REMATCH_CHECK(drawn.size() == order.size());
  for (int64_t& place : order) place = drawn[place];
  return order;
}

MicroBatches WindowStream::cut_chunks(const std::vector<int64_t>& order) const {
  const int64_t batch_size = options_.batches.per_device_train_batch_size,
                num_samples = options_.num_samples;
  const int64_t end =
      options_.batches.drop_last ? num_samples - num_samples % batch_size : num_samples;
  MicroBatches chunks;
  for (int64_t begin = 0; begin < end; begin += batch_size) {
    chunks.emplace_back(order.begin() + begin, order.begin() + std::min(begin + batch_size, end));
  }
  return chunks;
}

MicroBatches WindowStream::draw(int64_t epoch) {
  const std::vector<int64_t> order = draw_order(epoch);
  if (!options_.cut) return cut_chunks(order);
  MicroBatches micro_batches = options_.cut(order, epoch);
  REMATCH_CHECK(!micro_batches.empty());
  counted_.resize(std::max<size_t>(counted_.size(), epoch + 1));
  counted_[epoch] = micro_batches.size();
  return micro_batches;
}

const MicroBatches& WindowStream::current_micro_batches() {
  if (drawn_epoch_ != cursor_.epoch) micro_batches_ = draw(cursor_.epoch);
  drawn_epoch_ = cursor_.epoch;
  return micro_batches_;
}

int64_t WindowStream::windows_for(int64_t num_micro_batches) const {
  return ceil_div(num_micro_batches, window_size_);
}

int64_t WindowStream::windows_in_epoch(int64_t epoch) {
  return windows_for(micro_batches_in_epoch(epoch));
}

bool WindowStream::ends_partial(int64_t epoch) {
  return micro_batches_in_epoch(epoch) % window_size_ != 0;
}

int64_t WindowStream::micro_batches_in_epoch(int64_t epoch) {
  REMATCH_CHECK(epoch >= 0);
  const int64_t num_samples = options_.num_samples,
                batch_size = options_.batches.per_device_train_batch_size;
  if (!options_.cut)
    return options_.batches.drop_last ? num_samples / batch_size
                                      : ceil_div(num_samples, batch_size);
  if (epoch < std::ssize(counted_) && counted_[epoch] > 0) return counted_[epoch];
  // The cut of the cursor's epoch is kept for next(); other epochs are only counted.
  if (epoch == cursor_.epoch)
    current_micro_batches();
  else
    draw(epoch);
  return counted_[epoch];
}

int64_t WindowStream::windows_before(int64_t epoch) {
  if (!options_.cut) return epoch * windows_in_epoch(0);
  int64_t count = 0;
  for (int64_t before = 0; before < epoch; ++before) count += windows_in_epoch(before);
  return count;
}

WindowPlan WindowStream::next() {
  const MicroBatches& micro_batches = current_micro_batches();
  const auto num_micro_batches = std::ssize(micro_batches);
  const int64_t num_windows = windows_for(num_micro_batches);
  const int64_t first = cursor_.next_window_in_epoch * window_size_;
  const int64_t end = std::min(first + window_size_, num_micro_batches);
  WindowPlan plan{.window_idx = cursor_.window_idx,
                  .epoch = cursor_.epoch,
                  .is_partial = end - first < window_size_,
                  .last_of_epoch = cursor_.next_window_in_epoch + 1 == num_windows};
  for (int64_t i = first + options_.rank; i < end; i += options_.world_size) {
    plan.micro_batches.push_back(micro_batches[i]);
  }
  ++cursor_.window_idx;
  if (++cursor_.next_window_in_epoch == num_windows) {
    cursor_.next_window_in_epoch = 0;
    ++cursor_.epoch;
  }
  return plan;
}

void WindowStream::seek(const WindowCursor& cursor) {
  // This check comes first, so that a corrupt file can neither overflow a product nor make this
  // function draw more epochs than there were windows.
  const int64_t least_windows = options_.cut ? 1 : windows_in_epoch(0);
  const bool possible = cursor.epoch >= 0 && cursor.next_window_in_epoch >= 0 &&
                        cursor.window_idx / least_windows >= cursor.epoch;
  const bool fits =
      possible && cursor.window_idx - windows_before(cursor.epoch) == cursor.next_window_in_epoch &&
      cursor.next_window_in_epoch < windows_in_epoch(cursor.epoch);
  if (!fits) {
    throw data_error(
        {.error = "the saved position does not match the data",
         .where = "training_state: data cursor",
         .what = fmt::format("epoch {}, window {} of it, window {} overall; {} has {} windows here",
                             cursor.epoch, cursor.next_window_in_epoch, cursor.window_idx,
                             possible ? "this epoch" : "an epoch",
                             windows_in_epoch(possible ? cursor.epoch : 0)),
         .fix = "resume with the same data, batch size, accumulation steps, packing and number of "
                "ranks, or start a new run"});
  }
  cursor_ = cursor;
}

}  // namespace rematch
