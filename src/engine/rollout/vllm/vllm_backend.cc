// The two functions of backend `vllm` for engine_factory.cc; in a separate file, so that tests can
// replace them.
#include <ATen/ATen.h>

#include "engine/rollout/engine_factory.h"
#include "engine/rollout/vllm/plugin_loader.h"
#include "engine/rollout/vllm/shared_engine.h"
#include "engine/rollout/vllm/vllm_checks.h"
#include "engine/rollout/vllm/vllm_engine.h"
#include "engine/rollout/vllm/vllm_errors.h"

namespace rematch {

void check_vllm_available(const VllmOptions& options) {
  check_vllm_arithmetic(options, options.on_cpu ? rank_memory(options) : MemoryBytes{});
  const Interpreter interpreter = find_interpreter(options.python);
  check_interpreter(interpreter);
  VllmPlugin& plugin = open_plugin(interpreter);
  if (options.on_cpu) return;
  try {
    check_vllm_arithmetic(options, {.total = plugin.cuda_memory_bytes(options.device_index)});
  } catch (const PythonError& error) {
    throw vllm_error(ErrorKind::kEnvironment, "vLLM's torch sees no GPU", kVllmSection,
                     error.what(),
                     "use a CUDA build of torch and vLLM (scripts/setup-vllm), or --device cpu");
  }
}

std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts,
                                                const GenerateOptions& options) {
  auto engine =
      std::make_unique<VllmEngine>(open_plugin(find_interpreter(parts.vllm.python)), parts, options,
                                   PatchOptions::from_model_dir(parts.vllm.model_dir));
  if (parts.vllm.ranks == nullptr) return engine;
  return std::make_unique<SharedEngine>(std::move(engine), *parts.vllm.ranks);
}

}  // namespace rematch
