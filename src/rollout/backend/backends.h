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

/// Built-in engines; engine_factory.cc creates them.
enum class BuiltInEngine { kVllm, kHf, kNative, kNone };

/// An entry of the table of rollout backends. A backend added by another program provides `make`.
/// No libtorch here.
struct BackendRow {
  std::string name;
  std::string meaning;
  /// RolloutEngine::holds_own_weights(), needed before the engine is created (memory plan)
  bool holds_own_weights = false;
  BuiltInEngine built_in = BuiltInEngine::kNone;
  /// for kNone
  std::function<std::unique_ptr<RolloutEngine>(const EngineParts&, const GenerateOptions&)> make =
      {};
};

/// Values of `rollout_backend`.
Choices<BackendRow>& rollout_backends();

}  // namespace rematch
