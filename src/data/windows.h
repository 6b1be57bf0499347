#pragma once
#include <cstdint>
#include <vector>

namespace rematch {

/// How samples become windows.
struct WindowOptions {
  int64_t num_samples = 0;                  ///< ≥ 1
  int per_device_train_batch_size = 1;      ///< samples of a micro-batch, ≥ 1
  int gradient_accumulation_steps = 1;      ///< micro-batches of a window on each rank, ≥ 1
  uint64_t seed = 42;                       ///< with the epoch, all that the order depends on
  int world_size = 1;                       ///< ranks, ≥ 1
  int rank = 0;                             ///< 0..world_size-1
  bool drop_last = false;                   ///< leave out an epoch's last micro-batch when it is not full
  bool shuffle = true;                      ///< false: file order in every epoch (evaluation)
};

/// Which samples stand behind one window, on one rank.
struct WindowPlan {
  int64_t window_idx = 0;  ///< counted over all epochs from 0
  int64_t epoch = 0;
  std::vector<std::vector<int64_t>> micro_batches;  ///< indices into Dataset::samples(); may be empty on high ranks of a partial window
  bool is_partial = false;     ///< fewer micro-batches (over all ranks) than a full window has; the same on every rank
  bool last_of_epoch = false;
};

/// Where a stream stands: the window that next() gives next. Saved with checkpoints.
struct WindowCursor {
  int64_t epoch = 0;
  int64_t next_window_in_epoch = 0;  ///< 0..windows_per_epoch-1
  int64_t window_idx = 0;            ///< epoch · windows_per_epoch + next_window_in_epoch

  bool operator==(const WindowCursor&) const = default;
};

/// An endless stream of accumulation windows: each epoch is a permutation of the samples drawn from (seed, epoch), cut into micro-batches,
/// which the ranks take in turn; a window never spans two epochs. The union over ranks depends on the product of world_size and
/// gradient_accumulation_steps only.
///
///   WindowStream stream({.num_samples = dataset.size(), .gradient_accumulation_steps = 4, .seed = 7});
///   while (step < max_steps) {
///     WindowPlan plan = stream.next();
///     for (const auto& micro_batch : plan.micro_batches) { … dataset.samples()[micro_batch[0]] … }
///   }
class WindowStream {
 public:
  /// @throws UserError (config) when an option is out of range or drop_last leaves no micro-batch at all
  explicit WindowStream(WindowOptions options);

  /// The window at the cursor; moves the cursor on. Cost: linear in the window, once an epoch linear in the samples.
  WindowPlan next();

  int64_t windows_per_epoch() const { return windows_per_epoch_; }
  WindowCursor cursor() const { return cursor_; }
  /// Continues at a saved cursor. @throws UserError (data) when it does not fit this stream (other data, batch size or ranks)
  void seek(const WindowCursor& cursor);

 private:
  void draw_epoch();

  WindowOptions options_;
  int64_t micro_batches_per_epoch_ = 0;  ///< over all ranks
  int64_t windows_per_epoch_ = 0;
  WindowCursor cursor_;
  int64_t drawn_epoch_ = -1;
  std::vector<int64_t> order_;  ///< of drawn_epoch_
};

}  // namespace rematch
