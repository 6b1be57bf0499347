#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ranks/group.h"
#include "resume/trainer_state.h"

namespace rematch {

/// `checkpoint-N` directories of a run: written completely or not at all, rotated without ever
/// losing the best or the newest (BEHAVIOUR 17).
class Checkpoints {
 public:
  struct Options {
    std::string run_dir;
    int64_t save_total_limit = 0;  ///< 0 = keep all
    bool save_only_model = false;  ///< no training state
    /// rank 0 writes the model, each its part of the state; none goes on before the checkpoint is
    /// complete
    Group* group = &alone();
    std::function<void(const std::string&)> warn = {};  ///< of links that cannot be made
  };
  /// Writes the files of a checkpoint, or a part of them, into a directory.
  using Writer = std::function<void(const std::string& directory)>;

  /// @param write_model  the model's files (Hugging Face format)
  Checkpoints(Options options, Writer write_model);

  /// Path of the checkpoint of a step, whether it exists or not.
  std::string path_of(int64_t step) const;

  /// Saves `checkpoint-<state.global_step>` and rotates old ones. The manifest of its training
  /// state covers every file. When the step is the best so far, the state's best_model_checkpoint
  /// is set to it. The links `best` and `last` follow before old checkpoints go. A failure (full
  /// disk, …) leaves earlier checkpoints as they were.
  /// @param write_state  the training state (write_state_shard), after all other files; a part of
  /// it on each rank; not called with
  ///                     save_only_model
  /// @param seal         completes the state on rank 0, after all parts (write_state_manifest); may
  /// be empty
  /// Every rank calls it, inside a phase. @return its path; @throws UserError (environment)
  std::string save(TrainerState& state, const Writer& write_state, const Writer& seal = {});

  /// Steps of complete checkpoints that the run saved in its directory, ascending.
  std::vector<int64_t> existing_steps() const;

  /// Called once on rank 0, when the first checkpoint is complete except for its name: clears its
  /// place of an earlier run.
  void before_first_save(std::function<void()> clear) { clear_ = std::move(clear); }

 private:
  void write(const std::string& path, const TrainerState& state, const Writer& write_state,
             const Writer& seal);
  void make_room(const std::string& path);
  void rotate(const TrainerState& state) const;
  void link(const TrainerState& state) const;
  bool is_a_best(const TrainerState& state, int64_t step) const;
  void remove(int64_t step) const;
  Options options_;
  Writer write_model_;
  std::function<void()> clear_;
};

}  // namespace rematch
