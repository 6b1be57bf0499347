#include "train/window_cleanup.h"

#include "base/heap.h"

namespace rematch {
namespace {

// Cleaning after every window would cost a small model a tenth of its time in page faults.
constexpr int64_t kWindowsPerCleaning = 16;

}  // namespace

void WindowCleanup::after_window() {
  if (kept_ != nullptr) kept_->clear();
  if (++num_windows_ % kWindowsPerCleaning == 0) give_back_free_memory();
}

}  // namespace rematch
