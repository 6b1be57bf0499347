#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/peft_targets.h"
#include "model/families/description.h"
#include "settings/tuner.h"

namespace rematch {

/// The modules to adapt, and the parameters to train in full.
struct AdapterTargets : AdapterTargetSettings {
  /// Whether a parameter's part is frozen (`tuner.freeze_*`): frozen parts get no adapter. Empty:
  /// nothing is frozen.
  std::function<bool(const std::string& parameter)> is_frozen;
  /// trainable_token_indices as distinct ids; their rows are trained
  std::vector<int64_t> token_ids;
  std::string where = "tuner";  ///< name of the keys' section in errors
};

/// AdapterTargets resolved for a model.
struct AdapterSelection {
  std::vector<std::string> modules;           ///< Linears that get an adapter, in checkpoint order
  std::vector<std::string> saved_parameters;  ///< parameters that are trained in full
  /// tokens whose rows of embedding and head are trained
  std::vector<int64_t> token_ids;
  PeftTargets targets;     ///< targets with which PEFT selects exactly these
  int64_t num_frozen = 0;  ///< named modules that are in a frozen part
};

/// Selects the modules by name only, so that it can be done before weights are loaded.
/// @param parameter_names  of the model, in checkpoint order; a tied head is not among them
/// @throws UserError (config) with one problem for each: a list entry or a regex that matches
/// nothing (with similar names), that matches
///         something other than a Linear, or only what is frozen; a regex that does not compile; a
///         head that is the embedding
AdapterSelection select_targets(const ModelDescription& model,
                                const std::vector<std::string>& parameter_names,
                                const AdapterTargets& options);

/// Module name of a parameter: without its last component.
std::string module_of(const std::string& parameter);

}  // namespace rematch
