#include "rollout/vllm/engine_description.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rematch {

std::string engine_description(const VllmOptions& options, const MemoryBytes& memory) {
  Json arguments;
  arguments["model"] = options.model_dir;
  arguments["limit_mm_per_prompt"] = {{"image", options.max_images}, {"video", options.max_videos}};
  for (const auto& [name, value] : options.engine_args) arguments[name] = parse_json(value, name);
  // Every parameter comes from the training model, but a release's other values (the image's mean and deviation) do not: a start
  // with dummy weights leaves noise there.
  if (arguments.value("load_format", "") == "dummy") arguments["load_format"] = "auto";
  arguments["dtype"] = options.bfloat16 ? "bfloat16" : "float32";
  arguments["tensor_parallel_size"] = options.tensor_parallel_size;
  arguments["distributed_executor_backend"] = options.tensor_parallel_size > 1 ? "external_launcher" : "uni";
  arguments["gpu_memory_utilization"] = options.gpu_memory_utilization;
  arguments["max_model_len"] = options.max_model_len;
  arguments["max_num_seqs"] = options.max_num_seqs;
  arguments["generation_config"] = "vllm";  // every request carries its own decoding parameters
  arguments["mm_processor_kwargs"] = {{"do_resize", false}};
  arguments["mm_processor_cache_gb"] = 0;  // every sync would empty it
  arguments["disable_log_stats"] = true;
  arguments["seed"] = 0;
  if (options.sleep_level > 0 && !options.on_cpu) arguments["enable_sleep_mode"] = true;
  if (options.on_cpu) {
    arguments["enforce_eager"] = true;  // compiling takes minutes there
    arguments["kv_cache_memory_bytes"] = kv_cache_bytes(options, {memory.total, memory.total});
  }
  Json description;
  description["engine_args"] = std::move(arguments);
  description["log_path"] = options.log_path;
  description["on_cpu"] = options.on_cpu;
  return description.dump();
}

}  // namespace rematch
