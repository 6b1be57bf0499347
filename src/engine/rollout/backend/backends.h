#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/choices.h"

namespace rematch {

class RolloutEngine;
struct EngineParts;
struct GenerateOptions;
struct VllmOptions;

/// An entry of the table of rollout backends. No libtorch here: engine_factory.cc gives the
/// built-in backends their functions, so that the configuration knows the names without the
/// engines.
struct BackendRow {
  std::string name;
  std::string meaning;
  /// RolloutEngine::holds_own_weights(), needed before the engine is created (memory plan)
  bool holds_own_weights = false;
  /// decodes layers with the delta rule
  bool has_delta_rule = false;
  /// the one width of the delta rule's convolution that it decodes; 0 = every width
  int64_t delta_kernel = 0;
  /// creates the engine
  std::function<std::unique_ptr<RolloutEngine>(const EngineParts&, const GenerateOptions&)> make =
      {};
  /// throws UserError (environment) if the backend cannot run here; empty: it always can
  std::function<void(const VllmOptions&)> check = {};
};

/// Values of `rollout_backend`.
Choices<BackendRow>& rollout_backends();

}  // namespace rematch
