#pragma once
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/peft.h"
#include "model/families/description.h"
#include "settings/tuner.h"

namespace rematch {

/// Which modules a user wants adapted, and which parameters trained beside them.
struct AdapterTargets : AdapterTargetSettings {
  /// Whether a parameter's group is frozen (`tuner.freeze_*`): frozen groups get no adapter. Empty: nothing is frozen.
  std::function<bool(const std::string& parameter)> is_frozen;
  std::string where = "tuner";  ///< what to call the keys' section in errors
};

/// What AdapterTargets mean for a model.
struct AdapterSelection {
  std::vector<std::string> modules;           ///< Linears that get an adapter, in checkpoint order
  std::vector<std::string> saved_parameters;  ///< parameters that are trained in full
  PeftTargets targets;                        ///< what PEFT has to be told to choose exactly these
  int64_t num_frozen = 0;                     ///< modules that were named but lie in a frozen group
};

/// Chooses the modules. Nothing but names is looked at, so it can be done before weights are loaded.
/// @param parameter_names  of the model, in checkpoint order; a tied head is not among them
/// @throws UserError (config) with one problem for each: a list entry or a regex that matches nothing (listing near names), that matches
///         something other than a Linear, or only what is frozen; a regex that does not compile; a head that is the embedding
AdapterSelection select_targets(const ModelDescription& model, const std::vector<std::string>& parameter_names,
                                const AdapterTargets& options);

/// Module name of a parameter: without its last component.
std::string module_of(const std::string& parameter);

}  // namespace rematch
