#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name of the library
class App;
}

namespace rematch {

struct MemoryPlan;
struct PlanRequest;
struct Settings;

/// Arguments of `rematch plan`, and of the memory check of `rematch check`.
struct PlanArguments {
  std::string path;  ///< a configuration, a model directory or its config.json
  Strings overrides = {};
  std::optional<double> gpu_memory_gib = {};  ///< of one GPU; none = the CPU of this machine
  int num_ranks = 1;
  std::optional<int64_t> image_tokens = {};  ///< of the longest sample; none = half of it
  bool json = false;
};

/// Prints how much memory a run takes, phase by phase; reads no weights.
/// @return the exit code;
/// @throws UserError
int run_plan(const PlanArguments& arguments, std::ostream& out);

/// Declares --gpu-memory and --ranks.
void add_plan_device(CLI::App& command, PlanArguments& arguments, const char* gpu_memory_help);

/// The plan to make of settings.
PlanRequest plan_request_of(const Settings& settings, const PlanArguments& arguments);

/// Checks whether a plan fits, for `rematch check`.
/// @param arguments  where it came from
/// @return a warning; empty when it fits, or nothing is known
/// @throws UserError (config) when what every step holds is more than all memory of the GPU that
/// was asked for
std::string check_memory(const PlanRequest& request, const MemoryPlan& plan,
                         const PlanArguments& arguments);

}  // namespace rematch
