#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

struct MemoryPlan;
struct PlanRequest;

/// Arguments of `rematch plan`, and of the memory check of `rematch check`.
struct PlanArguments {
  std::string path;  ///< a configuration, a model directory or its config.json
  std::vector<std::string> overrides = {};
  std::optional<double> gpu_memory_gib = {};  ///< of one GPU; none = the CPU of this machine
  int num_ranks = 1;
  std::optional<int> zero_stage = {};        ///< none = training.zero_stage
  int64_t row_tokens = 0;                    ///< longest sample; 0 = global_max_length
  std::optional<int64_t> image_tokens = {};  ///< of that sample; none = half of it
  bool json = false;
};

/// Prints how much memory a run takes, phase by phase; reads no weights.
/// @return the exit code;
/// @throws UserError
int run_plan(const PlanArguments& arguments, std::ostream& out);

/// Checks whether a configuration fits, for `rematch check`.
/// @return a warning; empty when it fits, or nothing is known
/// @throws UserError (config) when what every step holds is more than all memory of the GPU that
/// was asked for
std::string check_memory(const PlanArguments& arguments);
/// The same for a plan that is made already.
/// @param arguments  where it came from
std::string check_memory(const PlanRequest& request, const MemoryPlan& plan,
                         const PlanArguments& arguments);

}  // namespace rematch
