#pragma once
#include <fstream>
#include <memory>
#include <string>

#include "engine/ranks/ranks.h"
#include "engine/ranks/world.h"
#include "program/assembly/job.h"

namespace rematch {

/// This process as a rank of a command, or alone: its device, its process group and its log. Rank 0
/// has the terminal, each other rank `logs/rank-N.log` in the run directory.
class RankProcess {
 public:
  /// Connects, and agrees on the run directory with rank 0.
  /// @param requested_device  value of --device.
  /// @throws UserError as Ranks
  RankProcess(const World& world, ConfigResult& result, const std::string& requested_device);
  RankProcess(const RankProcess&) = delete;

  Place place() { return {device_, *terminal_, ranks_.group()}; }

 private:
  void say_threads(const World& world);

  std::string device_;
  Ranks ranks_;
  std::ofstream file_;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace rematch
