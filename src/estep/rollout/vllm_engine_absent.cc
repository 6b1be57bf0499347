// Stands in for the vLLM backend in builds without it.
#include "base/error.h"
#include "estep/rollout/engine_factory.h"

namespace rematch {

void check_vllm_available() {
  throw UserError(ErrorKind::kEnvironment, {.error = "the vLLM rollout backend is not part of this build",
                                            .where = "custom.extra.rollout_matching.rollout_backend",
                                            .what = "rollout_backend is \"vllm\" (the default); this build has: hf",
                                            .fix = "set rollout_backend: hf under custom.extra.rollout_matching"});
}

std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts&, const GenerateOptions&) {
  check_vllm_available();
  return nullptr;
}

}  // namespace rematch
