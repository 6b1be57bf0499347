#pragma once
#include <string>

namespace rematch {

/// Keeps a second run out of a run directory: `.lock` in it, held for as long as the object lives.
///
/// The kernel's lock decides, not the file's existence: it ends with its process, however that
/// dies, and holds between the machines of a network file system that has locks. Where a file
/// system has none, the record in the file decides: a process of this machine that no longer runs
/// does not hold it; one of another machine does until the file is removed.
class RunLock {
 public:
  /// @throws UserError (environment) naming host, process and start time of the run that holds it,
  /// or when the file cannot be written
  explicit RunLock(const std::string& run_dir);
  /// As the constructor, for a run that starts later: takes and writes nothing. A directory that
  /// does not exist yet is free.
  static void require_free(const std::string& run_dir);
  /// Empties the record and lets go.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace rematch
