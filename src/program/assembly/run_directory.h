#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// The configuration of a training.
struct RunConfig {
  ConfigResult config;
  std::string note;  ///< names the directory that it takes in place of a used one; may be empty
};

/// Loads it. Where its directory holds a run that it does not resume, it takes the next free name.
/// @param overrides  of --set; get that name
/// @throws UserError as load_config(), and (environment) while the run there is alive
RunConfig load_run(const std::string& path, Strings& overrides, int num_ranks);

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
  /// True when the checkpoint is in this directory. Otherwise it holds no run (load_run).
  bool continues_its_run() const { return continues_its_run_; }
  /// Moves checkpoints after the resumed step aside and updates the links `best` and `last`, on
  /// rank 0.
  /// @param progress  of the resumed checkpoint
  void continue_from(const RunProgress& progress) const;

 private:
  std::optional<std::string> choose_checkpoint() const;

  const Settings& settings_;
  Terminal& terminal_;
  Group& group_;
  std::unique_ptr<const RunLock> lock_;
  std::optional<std::string> checkpoint_;
  bool continues_its_run_ = false;
};

}  // namespace rematch
