#pragma once
#include <chrono>
#include <cstdint>

#include "learn/train/trainer.h"
#include "program/assembly/make_trainer.h"
#include "program/assembly/observers.h"
#include "program/assembly/run_directory.h"

namespace rematch {

/// Prints where a run resumes, and at its end what it did and the next commands.
class RunSummary {
 public:
  /// Prints where the run resumes. Call it just before the first step, which starts the clock.
  RunSummary(const RunDirectory& directory, const Trainer& trainer, Terminal& terminal);

  /// Every rank calls it, inside a phase.
  void print(const Training& training, const Trainer& trainer, Observers& observers) const;

 private:
  Terminal& terminal_;
  int64_t first_step_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace rematch
