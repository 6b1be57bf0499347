#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/evaluate/score_calibration.h"
#include "learn/resume/trainer_state.h"

namespace rematch {

/// The `checkpoint-N` directories of a run. Each is written completely or not at all. Rotation
/// never deletes the best or the newest one (BEHAVIOUR 17).
class Checkpoints {
 public:
  struct Options {
    std::string run_dir;
    int64_t save_total_limit = 0;  ///< 0 = keep all
    bool save_only_model = false;  ///< no training state
    /// rank 0 writes the model, every rank its part of the state; all wait for the whole checkpoint
    Group* group = &alone();
    std::function<void(const std::string&)> warn = {};  ///< called when a link cannot be made
  };
  /// Writes all or some files of a checkpoint into a directory.
  using Writer = std::function<void(const std::string& directory)>;

  /// @param write_model  writes the model files (Hugging Face format)
  Checkpoints(Options options, Writer write_model);

  /// Path of the checkpoint of a step, which need not exist.
  std::string checkpoint_path(int64_t step) const;

  /// Saves `checkpoint-STEP`, updates the links `best` and `last`, then deletes old
  /// checkpoints. Sets best_model_checkpoint when the step is the best so far. A failure
  /// (full disk, …) leaves earlier checkpoints untouched. Every rank calls it, inside a phase.
  /// @param write_state  writes this rank's part of the training state, after all other files
  /// (write_state_shard); not called with save_only_model
  /// @param seal  completes the state on rank 0, after all parts (write_state_manifest); may be
  /// empty
  /// @param calibration  of the model's scores, kept next to it
  /// @return path of the checkpoint;
  /// @throws UserError (environment)
  std::string save(TrainerState& state, const Writer& write_state, const Writer& seal = {},
                   const std::optional<ScoreCalibration>& calibration = {});

  /// Steps of complete checkpoints that the run saved in its directory, ascending.
  std::vector<int64_t> existing_steps() const;

 private:
  void write(const std::string& path, const TrainerState& state, const Writer& write_state,
             const Writer& seal, const std::optional<ScoreCalibration>& calibration);
  void make_room(const std::string& path);
  void rotate(const RunProgress& progress) const;
  void link(const RunProgress& progress) const;
  bool is_best(const RunProgress& progress, int64_t step) const;
  void remove(int64_t step) const;
  Options options_;
  Writer write_model_;
};

}  // namespace rematch
