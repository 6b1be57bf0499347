#include "engine/rollout/backend/backends.h"

namespace rematch {

Choices<BackendRow>& rollout_backends() {
  static Choices<BackendRow> table(
      "rollout backend", "rollout_backend", "",
      {{.name = "vllm",
        .meaning = "vLLM inside this process, with its own weights",
        .holds_own_weights = true},
       {.name = "hf",
        .meaning = "the training model itself, a padded batch at a time: the reference",
        .has_delta_rule = true},
       {.name = "native",
        .meaning = "the built-in engine, on the training weights",
        .has_delta_rule = true,
        .delta_kernel = 4}});
  return table;
}

}  // namespace rematch
