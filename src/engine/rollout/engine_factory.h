#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/rollout/backend/backends.h"
#include "engine/rollout/engine.h"
#include "engine/rollout/hf_engine.h"
#include "engine/rollout/vllm/vllm_options.h"

namespace rematch {

/// Dependencies of an engine.
struct EngineParts {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  PixelGetter pixels;
  VllmOptions vllm;  ///< `vllm` only
};

/// Rejects a backend that cannot run here, before data or weights are read. Immediate, except that
/// importing `vllm` takes seconds.
/// @param backend  a name in rollout_backends()
/// @param vllm     `vllm` only
/// @throws UserError (environment) if `vllm` cannot run here, (config) for an unknown backend
void check_backend_available(const std::string& backend, const VllmOptions& vllm = {});

/// Rejects a backend that cannot decode the layers of a model, or its weights.
/// @param in_four_bits  true if weights are packed in 4 bits
/// @throws UserError (config) with the backends that can
void check_backend_decodes(const std::string& backend, const TextDescription& text,
                           bool in_four_bits);

/// Creates the engine of a backend.
/// @throws UserError as the functions above, and (config) for options out of range
std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts,
                                           const GenerateOptions& options);

// Behind the table of backends.
void check_vllm_available(const VllmOptions& options);
std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts,
                                                const GenerateOptions& options);
std::unique_ptr<RolloutEngine> make_native_engine(const EngineParts& parts,
                                                  const GenerateOptions& options);

}  // namespace rematch
