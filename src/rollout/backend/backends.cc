#include "rollout/backend/backends.h"

namespace rematch {

Choices<BackendRow>& rollout_backends() {
  static Choices<BackendRow> table(
      "rollout backend", "rollout_backend", "",
      {{"vllm", "vLLM inside this process, with its own weights", true, BuiltInEngine::kVllm},
       {"hf", "the training model itself, a padded batch at a time: the reference", false,
        BuiltInEngine::kHf},
       {"native", "the built-in engine, on the training weights", false, BuiltInEngine::kNative}});
  return table;
}

}  // namespace rematch
