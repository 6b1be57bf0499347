#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Start time of a process in ticks since boot; empty if it does not run, or was not reaped: in a
/// container without an init it stays forever.
std::string start_ticks(int64_t pid);

/// Exclusive lock of a run directory: its file `.lock`, held while the object exists.
///
/// The kernel's lock on the file decides, not its existence: the lock ends with its process, and
/// works across the machines of a network file system with locks. On a file system without locks
/// the record in the file decides: a process of this machine holds the lock while it runs; one of
/// another machine holds it until the file is removed.
class RunLock {
 public:
  /// @throws UserError (environment) naming host, process and start time of the run that holds the
  /// lock, or if the file cannot be written
  explicit RunLock(const std::string& run_dir);
  /// Checks that the lock is free, without taking it. A missing directory is free.
  /// @throws as the constructor
  static void require_free(const std::string& run_dir);
  /// Empties the record and releases the lock.
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace rematch
