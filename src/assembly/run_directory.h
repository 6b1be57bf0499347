#pragma once
#include <memory>
#include <optional>
#include <string>

#include "assembly/session.h"
#include "config/config.h"
#include "observe/terminal.h"
#include "ranks/group.h"
#include "resume/fingerprint.h"
#include "resume/run_lock.h"
#include "resume/run_state.h"

namespace rematch {

/// @throws UserError (configuration) when the files of the run would replace its configuration or
/// data, or its checkpoints the model it starts from
void refuse_to_replace_inputs(const ConfigResult& config);

/// The directory of a run: locked by rank 0 for as long as this object lives, cleared of what
/// killed runs left, with the configuration in args.json and effective_config.txt; and the
/// checkpoint that the run resumes from. Made before a model is loaded, so that an unwritable disk
/// is found first.
class RunDirectory {
 public:
  /// Every rank makes one, inside a phase. @throws UserError (environment) for a directory that
  /// cannot be written or is in use; as resolve_resume()
  RunDirectory(const ConfigResult& config, Terminal& terminal, Group& group);

  /// The checkpoint that the run resumes from, the same on every rank.
  const std::optional<std::string>& checkpoint() const { return checkpoint_; }
  /// Reads it, without its weights; warns about settings that changed. Nothing without one.
  /// @throws UserError (data) when it is damaged or of another run
  std::optional<LoadedCheckpoint> read_checkpoint(const Session& session,
                                                  const Fingerprint& fingerprint) const;
  /// True when that checkpoint is one of this directory; otherwise what the directory holds is an
  /// earlier run's.
  bool continues_its_run() const { return continues_its_run_; }
  /// Moves checkpoints of later steps than the resumed one aside, on rank 0; `best` and `last` then
  /// lead to what is left. @param state  of the resumed checkpoint
  void continue_from(const TrainerState& state) const;
  /// Moves the checkpoints and the log of an earlier run aside; for rank 0. @param log_bytes  of
  /// logging.jsonl that it wrote
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
