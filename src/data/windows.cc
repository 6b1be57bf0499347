#include "data/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace rematch {
namespace {

// Keeps this stream apart from the others that are keyed by the same seed and epoch.
constexpr uint64_t kEpochStream = 0x65706F6368ULL;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void require(bool holds, const char* key, const std::string& what, const char* fix) {
  if (holds) return;
  throw UserError(ErrorKind::kConfig, {.error = fmt::format("{} is out of range", key), .where = key, .what = what, .fix = fix});
}

}  // namespace

WindowStream::WindowStream(WindowOptions options) : options_(options) {
  const int64_t batch_size = options.per_device_train_batch_size;
  require(options.num_samples >= 1, "custom.train_jsonl", fmt::format("{} samples", options.num_samples), "give at least one record");
  require(batch_size >= 1, "training.per_device_train_batch_size", fmt::format("{}", batch_size), "give at least 1");
  require(options.gradient_accumulation_steps >= 1, "training.gradient_accumulation_steps",
          fmt::format("{}", options.gradient_accumulation_steps), "give at least 1");
  REMATCH_CHECK(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size,
                fmt::format("rank {} of {}", options.rank, options.world_size));
  micro_batches_per_epoch_ = options.drop_last ? options.num_samples / batch_size : ceil_div(options.num_samples, batch_size);
  require(micro_batches_per_epoch_ >= 1, "training.per_device_train_batch_size",
          fmt::format("{} samples give no full micro-batch of {}; dataloader_drop_last drops the rest", options.num_samples, batch_size),
          "lower it, or set training.dataloader_drop_last: false");
  windows_per_epoch_ = ceil_div(micro_batches_per_epoch_, int64_t{options.gradient_accumulation_steps} * options.world_size);
}

void WindowStream::draw_epoch() {
  if (drawn_epoch_ == cursor_.epoch) return;
  if (options_.shuffle) {
    order_ = random_permutation(random_key({kEpochStream, options_.seed, static_cast<uint64_t>(cursor_.epoch)}), options_.num_samples);
  } else {
    order_.resize(static_cast<size_t>(options_.num_samples));
    std::iota(order_.begin(), order_.end(), 0);
  }
  drawn_epoch_ = cursor_.epoch;
}

WindowPlan WindowStream::next() {
  draw_epoch();
  const int64_t batch_size = options_.per_device_train_batch_size;
  const int64_t window_size = int64_t{options_.gradient_accumulation_steps} * options_.world_size;
  const int64_t first = cursor_.next_window_in_epoch * window_size;
  const int64_t end = std::min(first + window_size, micro_batches_per_epoch_);
  WindowPlan plan{.window_idx = cursor_.window_idx, .epoch = cursor_.epoch, .micro_batches = {}, .is_partial = end - first < window_size,
                  .last_of_epoch = cursor_.next_window_in_epoch + 1 == windows_per_epoch_};
  for (int64_t micro_batch = first + options_.rank; micro_batch < end; micro_batch += options_.world_size) {
    const int64_t begin = micro_batch * batch_size, stop = std::min(begin + batch_size, options_.num_samples);
    plan.micro_batches.emplace_back(order_.begin() + begin, order_.begin() + stop);
  }
  ++cursor_.window_idx;
  if (++cursor_.next_window_in_epoch == windows_per_epoch_) {
    cursor_.next_window_in_epoch = 0;
    ++cursor_.epoch;
  }
  return plan;
}

void WindowStream::seek(const WindowCursor& cursor) {
  const bool fits = cursor.epoch >= 0 && cursor.next_window_in_epoch >= 0 && cursor.next_window_in_epoch < windows_per_epoch_ &&
                    cursor.window_idx >= 0 && cursor.window_idx / windows_per_epoch_ == cursor.epoch &&
                    cursor.window_idx % windows_per_epoch_ == cursor.next_window_in_epoch;
  if (!fits) {
    throw UserError(ErrorKind::kData,
                    {.error = "the saved position does not fit these data", .where = "training_state: data cursor",
                     .what = fmt::format("epoch {}, window {} of it, window {} in all; an epoch has {} windows here", cursor.epoch,
                                         cursor.next_window_in_epoch, cursor.window_idx, windows_per_epoch_),
                     .fix = "resume with the same data, batch size, accumulation steps and number of ranks, or start anew"});
  }
  cursor_ = cursor;
}

}  // namespace rematch
