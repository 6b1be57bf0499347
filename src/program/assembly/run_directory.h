#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/observe/terminal.h"
#include "engine/ranks/group.h"
#include "learn/resume/fingerprint.h"
#include "learn/resume/run_lock.h"
#include "learn/resume/run_state.h"
#include "program/assembly/job.h"
#include "program/config/config.h"

namespace rematch {

/// @throws UserError (config) when the run would overwrite its configuration, its data or the model
/// that it starts from
void refuse_to_replace_inputs(const ConfigResult& config);

/// The directory of a run, and the checkpoint that the run resumes from. Rank 0 locks the directory
/// for the lifetime of this object, removes leftovers of killed runs, and writes args.json and
/// effective_config.txt. Constructed after the data were accepted, so that a refused run leaves no
/// directory, and before a model is loaded, to find an unwritable disk early.
class RunDirectory {
 public:
  /// Every rank makes one, inside a phase. The job must outlive it.
  /// @throws UserError (environment) for an unwritable or locked directory; as resolve_resume()
  explicit RunDirectory(const Job& job);

  /// The checkpoint that the run resumes from, the same on every rank.
  const std::optional<std::string>& checkpoint() const { return checkpoint_; }
  /// Reads the checkpoint without its weights; warns about changed settings. Nullopt without one.
  /// @throws UserError (data) when it is damaged or of another run
  std::optional<LoadedCheckpoint> read_checkpoint(const Model& model,
                                                  const Fingerprint& fingerprint) const;
  /// True when the checkpoint is in this directory. Otherwise the directory's files belong to an
  /// earlier run.
  bool continues_its_run() const { return continues_its_run_; }
  /// Moves checkpoints after the resumed step aside and updates the links `best` and `last`, on
  /// rank 0.
  /// @param progress  of the resumed checkpoint
  void continue_from(const RunProgress& progress) const;
  /// Moves the checkpoints, the log and the evaluations of an earlier run aside; for rank 0.
  /// @param log_bytes  its part of logging.jsonl
  void move_earlier_run(int64_t log_bytes) const;

 private:
  void warn_about_earlier_run() const;
  std::optional<std::string> choose_checkpoint() const;

  const Settings& settings_;
  Terminal& terminal_;
  Group& group_;
  std::unique_ptr<const RunLock> lock_;
  std::optional<std::string> checkpoint_;
  bool continues_its_run_ = false;
};

}  // namespace rematch
