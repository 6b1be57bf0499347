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

/// Engines that come with the program; engine_factory.cc makes them.
enum class BuiltInEngine { kVllm, kHf, kNative, kNone };

/// A row of the table of rollout backends. A backend that a program adds brings its engine along;
/// rows stand here without libtorch.
struct BackendRow {
  std::string name;
  std::string meaning;
  /// RolloutEngine::holds_own_weights(), known before the engine is made (and the first peak with
  /// it)
  bool holds_own_weights = false;
  BuiltInEngine built_in = BuiltInEngine::kNone;
  /// with kNone
  std::function<std::unique_ptr<RolloutEngine>(const EngineParts&, const GenerateOptions&)> make =
      {};
};

/// Values of `rollout_backend`.
Choices<BackendRow>& rollout_backends();

}  // namespace rematch
