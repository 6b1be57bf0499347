#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace rematch {

struct MemoryPlan;
struct PlanRequest;

/// Arguments of a command that takes a CONFIG.
struct RunArguments {
  std::string config_path;
  std::vector<std::string> overrides;  ///< --set a.b.c=value, in order
  std::string device = "auto";         ///< --device
  bool resume = false;                 ///< `train --resume`
  /// of a command that asks a checkpoint: records in place of `custom.val_jsonl`; empty = those of
  /// the configuration
  std::string records = {};
  std::string answer_format = {};  ///< of such a command; empty = as configured
};

/// `rematch check CONFIG --config-only`: prints the values that are set or derived, or all of them,
/// and where they came from.
/// @return exit code; @throws UserError
int run_check(const std::string& config_path, const std::vector<std::string>& overrides,
              std::ostream& out, bool all_values = true);

/// Arguments of `rematch check`.
struct CheckArguments {
  RunArguments run;
  std::optional<double> gpu_memory_gib = {};  ///< of the GPU it is meant for; none = this machine
  int num_ranks = 1;
  bool config_only = false;  ///< the configuration alone, for a machine without model and data
  bool json = false;
  bool all_values = false;  ///< those at their defaults too
};

/// `rematch check CONFIG`: everything that `train` would refuse, found from headers; then the
/// values, what was found and the memory needed.
/// @throws UserError with all problems, unless as JSON. @return exit code
int run_preflight(const CheckArguments& arguments, std::ostream& out);

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

/// `rematch plan CONFIG|MODEL_DIR`: how much memory a run takes, phase by phase; reads no weights.
/// @throws UserError
int run_plan(const PlanArguments& arguments, std::ostream& out);

/// Checks whether a configuration fits, for `rematch check`. @return a warning; empty when it
/// fits, or nothing is known
/// @throws UserError (config) when what every step holds is more than all memory of the GPU that
/// was asked for
std::string check_memory(const PlanArguments& arguments);
/// The same for a plan that is made already. @param arguments  where it came from
std::string check_memory(const PlanRequest& request, const MemoryPlan& plan,
                         const PlanArguments& arguments);

/// `rematch train CONFIG`
int run_train(const RunArguments& arguments);

/// `rematch eval CONFIG`: evaluates on `custom.val_jsonl`, prints a table, writes eval_results.json
/// into the run directory. @param all_scores  prints every score and tables of classes and counts
int run_eval(const RunArguments& arguments, bool all_scores);

/// `rematch probe CONFIG`: measures on `custom.val_jsonl` whether stage 2 can help the checkpoint,
/// prints what it found and what to do.
/// @param num_draws  sampled answers for each image that misses an object, ≥ 1. @param as_json  one
/// JSON object instead of tables
int run_probe(const RunArguments& arguments, int num_draws, bool as_json);

/// `rematch rollout CONFIG`: writes each sample's rollout, parse and match as JSONL.
/// @param split   "val" or "train"; empty = val if the configuration has validation data
/// @param out     file to write, replaced when all lines are there; empty = rollouts.jsonl in the
/// run directory
int run_rollout(const RunArguments& arguments, const std::string& split, const std::string& out);

/// `rematch add-coord-tokens MODEL OUT [--untie]`: adds the 1000 coord tokens to a stock model
/// directory.
int run_add_coord_tokens(const std::string& model_dir, const std::string& out_dir, bool untie);

/// Arguments of `rematch merge`.
struct MergeArguments {
  std::string adapter_dir;
  std::string output_dir;
  std::string model_dir;  ///< empty = the one named by the adapter
  std::string dtype;      ///< "float32" or "bfloat16"; empty = as the base model stores its weights
};

/// `rematch merge ADAPTER_DIR --out DIR`: merges base model and adapter into a full checkpoint.
int run_merge(const MergeArguments& arguments);

/// Arguments of `rematch doctor`.
struct DoctorArguments {
  std::string config_path;  ///< empty: default settings
  std::string device = "auto";
};

/// `rematch doctor`: one line per rollout backend, and what it lacks. @return 0 when the chosen
/// backend (without a configuration: any) can run, else 4
int run_doctor(const DoctorArguments& arguments, std::ostream& out);

}  // namespace rematch
