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
  /// Moves checkpoints of later steps than the resumed one aside, on rank 0.
  void continue_from(int64_t step) const;

 private:
  std::optional<std::string> choose_checkpoint() const;

  const Settings& settings_;
  Terminal& terminal_;
  Group& group_;
  std::unique_ptr<const RunLock> lock_;
  std::optional<std::string> checkpoint_;
};

}  // namespace rematch
