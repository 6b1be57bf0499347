#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rollout/backend/backends.h"
#include "rollout/engine.h"
#include "rollout/hf_engine.h"
#include "rollout/vllm/vllm_options.h"

namespace rematch {

/// The parts that an engine is built from.
struct EngineParts {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  PixelGetter pixels;
  VllmOptions vllm;  ///< `vllm` only
};

/// Rejects a backend that cannot run here; called before any data or weights are read. Free, except
/// for `vllm`, whose import takes seconds.
/// @param backend  a name in rollout_backends()
/// @param vllm     `vllm` only
/// @throws UserError (environment) when `vllm` cannot run here, (config) for one that is unknown or
/// not built yet; each with a mitigation
void check_backend_available(const std::string& backend, const VllmOptions& vllm = {});

/// The engine of a backend. @throws UserError as check_backend_available(), and (config) for
/// options out of range
std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts,
                                           const GenerateOptions& options);

// Engines of rows of rollout_backends().
void check_vllm_available(const VllmOptions& options);
std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts,
                                                const GenerateOptions& options);
std::unique_ptr<RolloutEngine> make_native_engine(const EngineParts& parts,
                                                  const GenerateOptions& options);

}  // namespace rematch
