#include "program/assembly/vllm_setup.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/host_memory.h"
#include "engine/ranks/device.h"
#include "engine/ranks/world.h"
#include "engine/rollout/vllm/vllm_checks.h"
#include "learn/estep/sample_lengths.h"

namespace rematch {

std::unique_ptr<Group> split_engine_ranks(const Settings& settings, Group& group) {
  const int size = settings.vllm.tensor_parallel_size;
  if (settings.backend != "vllm" || size == 1 || group.is_alone()) return nullptr;
  VllmOptions options{settings.vllm};
  options.world_size = group.size();
  check_vllm_ranks(options);
  check_vllm_hosts(group.all_gather(host_name()), size);
  return group.split(size);
}

VllmOptions make_vllm_options(const Settings& settings, const at::Device& device,
                              const Group& group, Group* ranks) {
  VllmOptions options{settings.vllm};
  options.world_size = group.size();
  options.device_index = device.has_index() ? device.index() : 0;
  if (!group.is_alone()) {
    const World world = world_from_environment();
    options.ranks = ranks;
    options.ranks_on_host = world.local_size;
    options.store_host = world.host;
    options.store_port = world.port;
    options.store_prefix =
        fmt::format("rematch/{}/{}/{}/vllm/{}", world.run_id, world.restart, world.size,
                    group.rank() / settings.vllm.tensor_parallel_size);
  }
  options.model_dir = settings.model.directory;
  options.on_cpu = !device.is_cuda();
  options.bfloat16 = dtype_on(device, settings.model.dtype) == at::kBFloat16;
  options.log_path =
      settings.output.run_dir +
      (group.rank() == 0 ? "/vllm.log" : "/vllm-" + std::to_string(group.rank()) + ".log");
  return options;
}

void settle_vllm_options(VllmOptions& options, const Settings& settings,
                         const std::vector<const Dataset*>& data, const ModelFiles& files) {
  int longest = 0;
  std::string where;
  for (const Dataset* dataset : data) {
    const std::vector<SampleLength> lengths =
        measure_samples(*dataset, *files.prompts, *files.format,
                        {.augment = settings.augment, .patches = files.patches}, [](int64_t) {});
    const auto found = std::ranges::max_element(lengths, {}, &SampleLength::prompt_len);
    if (found == lengths.end() || found->prompt_len <= longest) continue;
    longest = found->prompt_len;
    where = dataset->samples()[found - lengths.begin()].where;
  }
  set_max_model_len(options, longest, settings.generation.max_new_tokens, where);
  make_directories(settings.output.run_dir);  // of the engine's log
}

}  // namespace rematch
