#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/trainer_state.h"

namespace rematch {

/// `checkpoint-N` directories of a run: written whole or not at all, rotated without ever losing the best or the newest (BEHAVIOUR 17).
class Checkpoints {
 public:
  struct Options {
    std::string run_dir;
    int64_t save_total_limit = 0;  ///< 0 = keep all
  };
  /// Writes the model's files (Hugging Face format) into a directory.
  using ModelWriter = std::function<void(const std::string& directory)>;

  Checkpoints(Options options, ModelWriter write_model);

  /// Path of the checkpoint of a step, whether it exists or not.
  std::string path_of(int64_t step) const;

  /// Saves `checkpoint-<state.global_step>` and rotates old ones. When the step is the best so far, the state's best_model_checkpoint
  /// is set to it. A failure (full disk, …) leaves earlier checkpoints as they were. @return its path; @throws UserError (environment)
  std::string save(TrainerState& state);

  /// Steps of complete checkpoints in the run directory, ascending.
  std::vector<int64_t> existing_steps() const;

 private:
  void rotate(const TrainerState& state) const;
  Options options_;
  ModelWriter write_model_;
};

}  // namespace rematch
