#pragma once
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

#include "settings/data.h"

namespace rematch {

/// Cuts the order of an epoch into micro-batches: sample indices in, at least one micro-batch and
/// no empty one out. Depends on its arguments only.
using CutEpoch = std::function<std::vector<std::vector<int64_t>>(const std::vector<int64_t>& order,
                                                                 int64_t epoch)>;

/// The sample indices that an epoch takes, always equally many; an index may recur.
using DrawEpoch = std::function<std::vector<int64_t>(int64_t epoch)>;

/// Options for cutting samples into windows.
struct WindowOptions {
  int64_t num_samples = 0;  ///< of an epoch, ≥ 1
  BatchSettings batches;
  uint64_t seed = 42;   ///< with the epoch, all that determines the order
  int world_size = 1;   ///< ranks, ≥ 1
  int rank = 0;         ///< 0..world_size-1
  bool shuffle = true;  ///< false: file order in every epoch (evaluation)
  /// Empty: consecutive chunks of per_device_train_batch_size. Given (stage 1 with packing): each
  /// of its micro-batches counts as one sample, so a window holds gradient_accumulation_steps ·
  /// per_device_train_batch_size of them on each rank; drop_last then drops nothing.
  CutEpoch cut;
  DrawEpoch draw;  ///< empty: every sample once
};

/// The samples of one window, on one rank.
struct WindowPlan {
  int64_t window_idx = 0;  ///< counted over all epochs from 0
  int64_t epoch = 0;
  /// indices into Dataset::samples(); may be empty on high ranks of a partial window
  std::vector<std::vector<int64_t>> micro_batches;
  /// fewer micro-batches (over all ranks) than a full window has; the same on every rank
  bool is_partial = false;
  bool last_of_epoch = false;

  /// Those of all micro-batches, in order.
  std::vector<int64_t> samples() const {
    std::vector<int64_t> all;
    for (const auto& micro_batch : micro_batches)
      all.insert(all.end(), micro_batch.begin(), micro_batch.end());
    return all;
  }
  /// One item for each of samples(), as lists for each micro-batch.
  template <typename Item>
  std::vector<std::vector<Item>> by_micro_batch(std::vector<Item> items) const {
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

/// Position of a stream: the window that next() returns next. Saved with checkpoints.
struct WindowCursor {
  int64_t epoch = 0;
  int64_t next_window_in_epoch = 0;  ///< 0..windows_in_epoch(epoch)-1
  int64_t window_idx = 0;            ///< windows of all epochs before + next_window_in_epoch

  bool operator==(const WindowCursor&) const = default;

  template <typename Wire>
  friend void fields(Wire& wire, WindowCursor& cursor) {
    wire(cursor.epoch, cursor.next_window_in_epoch, cursor.window_idx);
  }
};

/// An endless stream of accumulation windows: each epoch is a permutation of the samples drawn from
/// (seed, epoch), cut into micro-batches, which the ranks take in turn; a window never spans two
/// epochs. The union over ranks depends on the product of world_size and
/// gradient_accumulation_steps only. With its own `cut` an epoch may have more or fewer
/// windows than another.
///
///   WindowStream stream({.num_samples = dataset.size(), .batches = {.gradient_accumulation_steps =
///   4}, .seed = 7}); while (step < max_steps) {
///     WindowPlan plan = stream.next();
///     for (const auto& micro_batch : plan.micro_batches) { … dataset.samples()[micro_batch[0]] … }
///   }
class WindowStream {
 public:
  /// @throws UserError (config) when an option is out of range or drop_last leaves no micro-batch
  /// at all
  explicit WindowStream(WindowOptions options);

  /// The window at the cursor; advances the cursor. Cost: linear in the window, once per epoch
  /// linear in the samples (and the cut).
  WindowPlan next();

  /// Windows of an epoch. Cost: constant without a `cut`; else an epoch that is requested for the
  /// first time is drawn and cut.
  /// @param epoch  ≥ 0
  int64_t windows_in_epoch(int64_t epoch);
  /// True when the last window of an epoch has fewer micro-batches than a full one
  /// (WindowPlan::is_partial). Cost: as windows_in_epoch.
  bool ends_partial(int64_t epoch);
  WindowCursor cursor() const { return cursor_; }
  /// Returns to an earlier cursor of this stream. Draws nothing.
  void rewind(const WindowCursor& cursor) { cursor_ = cursor; }
  /// Continues at a saved cursor. @throws UserError (data) when it does not fit this stream (other
  /// data, batch size, ranks or packing) Cost: with a `cut`, every epoch before the cursor's is
  /// drawn and cut to be counted.
  void seek(const WindowCursor& cursor);

 private:
  std::vector<int64_t> order_of(int64_t epoch) const;
  std::vector<std::vector<int64_t>> cut_chunks(const std::vector<int64_t>& order) const;
  std::vector<std::vector<int64_t>> draw(int64_t epoch);
  const std::vector<std::vector<int64_t>>& current_micro_batches();
  int64_t windows_for(int64_t num_micro_batches) const;
  int64_t windows_before(int64_t epoch);
  int64_t micro_batches_in_epoch(int64_t epoch);

  WindowOptions options_;
  int64_t window_size_ = 0;  ///< micro-batches of a full window over all ranks
  WindowCursor cursor_;
  /// with a cut: micro-batches of epochs 0, 1, …; 0 = not counted yet
  std::vector<int64_t> counted_;
  int64_t drawn_epoch_ = -1;
  /// of drawn_epoch_, which is or was the cursor's, over all ranks
  std::vector<std::vector<int64_t>> micro_batches_;
};

}  // namespace rematch
