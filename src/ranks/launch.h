#pragma once
#include <functional>
#include <string>
#include <vector>

namespace rematch {

/// Starts a program once for each rank, on this host, with torchrun's environment; hosts the ranks'
/// store.
struct LaunchOptions {
  int num_ranks = 1;
  int num_restarts = 0;                 ///< of all ranks together, after any has failed
  std::vector<std::string> command;     ///< program and arguments
  std::vector<std::string> on_restart;  ///< arguments added from the first restart on
  /// takes a line: which rank has failed, that all start again
  std::function<void(const std::string&)> say;
};

/// Runs until all ranks have ended. A rank that fails ends the others: they have ten seconds to end
/// by themselves, because they learn of it, and ten more after SIGTERM. SIGINT and SIGTERM are
/// handed on to every rank once. Ranks end with this process. An interrupt and a wrong
/// configuration (exit codes 130 and 2) are not started again.
/// @return 0, or the exit code of the rank that failed first (128 + signal)
/// @throws UserError (environment) when no process can be started
int launch_ranks(const LaunchOptions& options);

}  // namespace rematch
