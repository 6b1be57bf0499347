// Stands in for the native backend until it is built.
#include "base/error.h"
#include "estep/rollout/engine_factory.h"

namespace rematch {

void check_native_available() {
  throw UserError(ErrorKind::kConfig, {.error = "the native rollout backend is not part of this build",
                                       .where = "custom.extra.rollout_matching.rollout_backend",
                                       .what = "rollout_backend is \"native\"; this build has: hf",
                                       .fix = "set rollout_backend: hf under custom.extra.rollout_matching (same results, slower)"});
}

std::unique_ptr<RolloutEngine> make_native_engine(const EngineParts&, const GenerateOptions&) {
  check_native_available();
  return nullptr;
}

}  // namespace rematch
