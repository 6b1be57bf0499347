#pragma once
#include <memory>
#include <string>
#include <vector>

#include "estep/estep.h"
#include "estep/rollout/engine.h"
#include "mstep/mstep.h"

namespace rematch::test {

/// Stage 2 on the golden scenes and the tiny golden model in process, with recorded answers in the place of an engine: the same numbers
/// every time, whatever the decoder does.
class RecordedStage2 {
 public:
  RecordedStage2();
  ~RecordedStage2();
  /// Segments of a window as the E-step builds them. @param samples  micro-batches of sample indices
  WindowSegments segments(const std::vector<std::vector<int64_t>>& samples);
  /// A fresh optimizer over a freshly loaded model. @param learning_rate  constant
  MStep& mstep(double learning_rate);
  /// From now on the engine reports prompt ids that differ from ours at `position`, as a backend with a token drift would.
  void drift_prompt_ids(size_t position);
  Examiner& examiner();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rematch::test
