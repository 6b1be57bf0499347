#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Length of a first run, size of its steps, and interval between saves.
struct InitSchedule {
  int64_t batch_size = 16;  ///< samples of an optimizer step
  int64_t epochs = 3;
  int64_t steps = 0;       ///< of the whole run
  int64_t save_steps = 0;  ///< 0: after every epoch
};

/// Enough epochs for 200 optimizer steps, at least 3; steps of few samples where there are few.
/// @param num_samples  ≥ 1
InitSchedule init_schedule(int64_t num_samples);

/// The keys of `training` with the reasons as comments.
/// @param has_val  evaluates when it saves
std::string schedule_lines(const InitSchedule& schedule, int64_t num_samples, bool has_val,
                           bool is_stage_1);

}  // namespace rematch
