#include "engine/rollout/vllm/engine_description.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "engine/ranks/group.h"

namespace rematch {
namespace {

// Timeout of a rank that waits for another rank of its engine. They run in lock-step, so waits are
// normally short.
constexpr std::chrono::seconds kTimeout{600};

}  // namespace

std::string engine_description(const VllmOptions& options, const MemoryBytes& memory) {
  Json arguments;
  arguments["model"] = options.model_dir;
  arguments["limit_mm_per_prompt"] = {{"image", options.max_images}, {"video", options.max_videos}};
  for (const auto& [name, value] : options.engine_args) arguments[name] = parse_json(value, name);
  // Parameters come from the training model, but other values of a release (the mean and deviation
  // of images) do not, and dummy weights would leave noise there.
  if (arguments.value("load_format", "") == "dummy") arguments["load_format"] = "auto";
  arguments["dtype"] = options.bfloat16 ? "bfloat16" : "float32";
  arguments["tensor_parallel_size"] = options.tensor_parallel_size;
  // On a GPU an engine selects its device by joining a group, even if it is the only member.
  const bool joins_group =
      options.ranks != nullptr ||
      (!options.on_cpu && (options.world_size > 1 || options.device_index > 0));
  arguments["distributed_executor_backend"] = joins_group ? "external_launcher" : "uni";
  arguments["gpu_memory_utilization"] = options.gpu_memory_utilization;
  arguments["max_model_len"] = options.max_model_len;
  arguments["max_num_seqs"] = options.max_num_seqs;
  arguments["generation_config"] = "vllm";  // every request carries its own decoding parameters
  arguments["mm_processor_kwargs"] = {{"do_resize", false}};
  arguments["mm_processor_cache_gb"] = 0;  // useless: every sync empties it
  arguments["disable_log_stats"] = true;
  arguments["seed"] = 0;
  if (!options.on_cpu && options.sleep_level_on(true) > 0) arguments["enable_sleep_mode"] = true;
  if (options.on_cpu) {
    arguments["enforce_eager"] = true;  // compiling takes minutes on a CPU
    arguments["kv_cache_memory_bytes"] = kv_cache_bytes(options, {memory.total, memory.total});
  }
  Json description;
  description["engine_args"] = std::move(arguments);
  description["log_path"] = options.log_path;
  description["on_cpu"] = options.on_cpu;
  if (joins_group) {
    // Without a host the group has one member, which needs no store of others.
    description["group"] = {{"host", options.store_host},
                            {"port", options.store_port},
                            {"prefix", options.store_prefix},
                            {"rank", options.ranks != nullptr ? options.ranks->rank() : 0},
                            {"size", options.tensor_parallel_size},
                            {"device", options.device_index},
                            {"timeout_s", kTimeout.count()}};
  }
  return description.dump();
}

}  // namespace rematch
