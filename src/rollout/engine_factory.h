#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rollout/engine.h"
#include "rollout/hf_engine.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// What an engine is made of.
struct EngineParts {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  PixelGetter pixels;
  VllmOptions vllm;  ///< `vllm` only
};

/// Refuses a backend that cannot run here; called before any data or weights are read. Free, but for `vllm`, which is imported: seconds.
/// @param backend  value of `rollout_backend`: "hf", "vllm" or "native"
/// @param vllm     `vllm` only
/// @throws UserError (environment) when `vllm` cannot run here, (config) for one that is unknown or not built yet; each with a mitigation
void check_backend_available(const std::string& backend, const VllmOptions& vllm = {});

/// Names of all backends.
std::vector<std::string> backend_names();

/// What RolloutEngine::holds_own_weights() of a backend's engine will say, known before the engine is made (and the first peak with it).
/// @throws UserError (config) for an unknown backend
bool backend_holds_own_weights(const std::string& backend);

/// The engine of a backend. @throws UserError as check_backend_available(), and (config) for options out of range
std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts, const GenerateOptions& options);

// Rows of the table in engine_factory.cc.
void check_vllm_available(const VllmOptions& options);
std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts, const GenerateOptions& options);
std::unique_ptr<RolloutEngine> make_native_engine(const EngineParts& parts, const GenerateOptions& options);

}  // namespace rematch
