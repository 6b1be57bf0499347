#pragma once
#include <cstdint>

#include "model/feature_cache.h"

namespace rematch {

/// Frees what was held for a window whose rows will not recur. Changes no number.
class WindowCleanup {
 public:
  /// @param kept  vision features that are reused by the steps on one window; null when every
  /// window is used once
  explicit WindowCleanup(FeatureCache* kept) : kept_(kept) {}

  /// Call when a window has been used for the last time: drops its features; after every 16th
  /// window the heap's free pages return to the system.
  void after_window();

 private:
  FeatureCache* kept_;
  int64_t num_windows_ = 0;
};

}  // namespace rematch
