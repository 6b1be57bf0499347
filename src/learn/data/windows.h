#pragma once
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "base/settings/data.h"

namespace rematch {

/// Sample indices of each micro-batch.
using MicroBatches = std::vector<std::vector<int64_t>>;

/// Cuts the sample indices of an epoch into at least one micro-batch, none of them empty. Depends
/// only on its arguments.
using CutEpoch = std::function<MicroBatches(const std::vector<int64_t>& order, int64_t epoch)>;

/// Draws the sample indices of an epoch, always the same number; indices may repeat.
using DrawEpoch = std::function<std::vector<int64_t>(int64_t epoch)>;

/// Options for cutting samples into windows.
struct WindowOptions {
  int64_t num_samples = 0;  ///< samples per epoch, ≥ 1
  BatchSettings batches;
  uint64_t seed = 42;  ///< determines the order, together with the epoch
  int world_size = 1;  ///< ranks, ≥ 1
  int rank = 0;        ///< 0..world_size-1
  /// Empty: consecutive chunks of per_device_train_batch_size samples. Set (stage 1 with packing):
  /// a window has gradient_accumulation_steps · per_device_train_batch_size of its micro-batches on
  /// each rank, and drop_last drops nothing.
  CutEpoch cut;
  DrawEpoch draw;  ///< empty: every sample once
};

/// The samples of one window on one rank.
struct WindowPlan {
  int64_t window_idx = 0;  ///< counts from 0 over all epochs
  int64_t epoch = 0;
  /// indices into Dataset::samples(); may be empty on high ranks of a partial window
  MicroBatches micro_batches;
  bool is_partial = false;  ///< fewer micro-batches over all ranks than a full window
  bool last_of_epoch = false;

  /// The sample indices of all micro-batches, in order.
  std::vector<int64_t> samples() const {
    std::vector<int64_t> all;
    for (const auto& micro_batch : micro_batches)
      all.insert(all.end(), micro_batch.begin(), micro_batch.end());
    return all;
  }
  /// Splits a list with one item per sample into one list per micro-batch.
  template <typename Item>
  std::vector<std::vector<Item>> split_by_micro_batch(std::vector<Item> items) const {
    std::vector<std::vector<Item>> lists;
    auto next = std::make_move_iterator(items.begin());
    for (const auto& micro_batch : micro_batches) {
      const auto end = next + std::ssize(micro_batch);
      lists.emplace_back(next, end);
      next = end;
    }
    return lists;
  }
};

/// Position in a stream: the window that next() will return. Saved in checkpoints.
struct WindowCursor {
  int64_t epoch = 0;
  int64_t next_window_in_epoch = 0;  ///< 0..windows_in_epoch(epoch)-1
  int64_t window_idx = 0;            ///< windows of all earlier epochs + next_window_in_epoch

  bool operator==(const WindowCursor&) const = default;

  friend void fields(auto& wire, WindowCursor& cursor) {
    wire(cursor.epoch, cursor.next_window_in_epoch, cursor.window_idx);
  }
};

/// An endless stream of accumulation windows. Each epoch permutes the samples by (seed, epoch) and
/// cuts them into micro-batches, which the ranks take in turn; a window never spans two epochs. The
/// union over ranks depends only on world_size · gradient_accumulation_steps. With `cut`, epochs
/// may differ in their number of windows.
///
///   WindowStream stream({.num_samples = dataset.size(), .seed = 7});
///   while (step < max_steps) {
///     WindowPlan plan = stream.next();
///     for (const auto& micro_batch : plan.micro_batches) { … dataset.samples()[micro_batch[0]] … }
///   }
class WindowStream {
 public:
  /// @throws UserError (config) if an option is out of range, or drop_last leaves no micro-batch
  explicit WindowStream(WindowOptions options);

  /// Returns the window at the cursor and advances the cursor. Cost: linear in the window; once per
  /// epoch linear in the samples, plus the cut.
  WindowPlan next();

  /// Number of windows in an epoch. Cost: constant without `cut`; else the first call for an epoch
  /// draws and cuts it.
  /// @param epoch  ≥ 0
  int64_t windows_in_epoch(int64_t epoch);
  /// True if the last window of an epoch is partial (WindowPlan::is_partial). Cost: as
  /// windows_in_epoch.
  bool ends_partial(int64_t epoch);
  WindowCursor cursor() const { return cursor_; }
  /// Returns to an earlier cursor of this stream. Cost: constant.
  void rewind(const WindowCursor& cursor) { cursor_ = cursor; }
  /// Continues at a saved cursor. Cost: with `cut`, draws and cuts every epoch before the cursor's
  /// to count its windows.
  /// @throws UserError (data) if it does not fit this stream (other data, batch size, ranks or
  /// packing)
  void seek(const WindowCursor& cursor);

 private:
  std::vector<int64_t> draw_order(int64_t epoch) const;
  MicroBatches cut_chunks(const std::vector<int64_t>& order) const;
  MicroBatches draw(int64_t epoch);
  const MicroBatches& current_micro_batches();
  int64_t windows_for(int64_t num_micro_batches) const;
  int64_t windows_before(int64_t epoch);
  int64_t micro_batches_in_epoch(int64_t epoch);

  WindowOptions options_;
  int64_t window_size_ = 0;  ///< micro-batches in a full window over all ranks
  WindowCursor cursor_;
  std::vector<int64_t> counted_;  ///< with `cut`: micro-batches in epochs 0, 1, …; 0 = not counted
  int64_t drawn_epoch_ = -1;
  MicroBatches micro_batches_;  ///< of drawn_epoch_, over all ranks
};

}  // namespace rematch
