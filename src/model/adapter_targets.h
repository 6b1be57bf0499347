#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/settings/tuner.h"
#include "model/checkpoint/peft_targets.h"
#include "model/families/description.h"

namespace rematch {

/// The modules to adapt, and the parameters to train in full.
struct AdapterTargets : AdapterTargetSettings {
  /// Returns true for a parameter of a frozen part (`tuner.freeze_*`), which gets no adapter.
  /// Empty: nothing is frozen.
  std::function<bool(const std::string& parameter)> is_frozen;
  /// trainable_token_indices as distinct ids
  std::vector<int64_t> token_ids;
  std::string where = "tuner";  ///< name of the keys' section in errors
};

/// The parameters in parts of a model that are frozen.
std::function<bool(const std::string& parameter)> frozen_parameters(const ModelDescription& model,
                                                                    const FreezeSettings& freeze);

/// AdapterTargets resolved for a model.
struct AdapterSelection {
  Strings modules;           ///< Linears that get an adapter, in checkpoint order
  Strings saved_parameters;  ///< parameters that are trained in full
  /// tokens with trained rows of embedding and head
  std::vector<int64_t> token_ids;
  PeftTargets targets;     ///< PEFT's settings that select exactly these
  int64_t num_frozen = 0;  ///< named modules in a frozen part
};

/// Selects modules by name, before weights are loaded.
/// @param parameter_names  of the model, in checkpoint order; without a tied head
/// @throws UserError (config) with a problem for each: a list entry or a regex that matches nothing
/// (with similar names), a module that is not a Linear, or only frozen modules; an invalid regex; a
/// head that is tied to the embedding
AdapterSelection select_targets(const ModelDescription& model, const Strings& parameter_names,
                                const AdapterTargets& options);

/// The first of the modules that PEFT would not adapt with these targets; "" if it adapts all.
/// @param where  of the targets, for errors.
/// @throws UserError (config) for an invalid regex
std::string find_untargeted(const PeftTargets& targets, const Strings& modules,
                            const std::string& where);

/// Module name of a parameter: without its last component.
std::string module_of(const std::string& parameter);

}  // namespace rematch
