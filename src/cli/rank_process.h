#pragma once
#include <fstream>
#include <memory>
#include <string>

#include "config/config.h"
#include "ranks/group.h"
#include "ranks/ranks.h"
#include "ranks/world.h"
#include "observe/terminal.h"

namespace rematch {

/// This process as a rank of a command, or alone: its device, its process group and its log. Rank 0
/// has the terminal, each other rank `logs/rank-N.log` in the run directory.
class RankProcess {
 public:
  /// Connects, agrees on the run directory with rank 0 and prints the warnings of the
  /// configuration.
  /// @param wish  value of --device. @throws UserError as Ranks
  RankProcess(const World& world, ConfigResult& result, const std::string& wish);
  RankProcess(const RankProcess&) = delete;

  const std::string& device() const { return device_; }
  Group& group() { return ranks_.group(); }
  Terminal& terminal() { return *terminal_; }

 private:
  void say_threads(const World& world);

  std::string device_;
  Ranks ranks_;
  std::ofstream file_;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace rematch
