#include "rollout/engine_factory.h"

#include "base/error.h"

namespace rematch {

void check_backend_available(const std::string& backend, const VllmOptions& vllm) {
  if (rollout_backends().find(backend).built_in == BuiltInEngine::kVllm) check_vllm_available(vllm);
}

std::unique_ptr<RolloutEngine> make_engine(const std::string& backend, const EngineParts& parts,
                                           const GenerateOptions& options) {
  check_backend_available(backend, parts.vllm);
  const BackendRow& row = rollout_backends().find(backend);
  const auto make = [&]() -> std::unique_ptr<RolloutEngine> {
    switch (row.built_in) {
      case BuiltInEngine::kVllm: return make_vllm_engine(parts, options);
      case BuiltInEngine::kHf:
        return std::make_unique<HfEngine>(parts.model, parts.tokenizer, parts.pixels, options);
      case BuiltInEngine::kNative: return make_native_engine(parts, options);
      case BuiltInEngine::kNone: break;
    }
    return row.make(parts, options);
  };
  std::unique_ptr<RolloutEngine> engine = make();
  REMATCH_CHECK(engine->holds_own_weights() == row.holds_own_weights, backend);
  return engine;
}

}  // namespace rematch
