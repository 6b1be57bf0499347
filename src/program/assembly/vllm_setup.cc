#include "program/assembly/vllm_setup.h"

#include <fmt/core.h>

#include <set>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/host_memory.h"
#include "engine/ranks/device.h"
#include "engine/ranks/world.h"
#include "engine/rollout/vllm/vllm_checks.h"
#include "learn/augment/absent_classes.h"
#include "learn/estep/rollout_scorer.h"

namespace rematch {
namespace {

// The longest prompt of the data, and its sample.
class LongestPrompt {
 public:
  int64_t num_tokens = 0;
  std::string where;

  void update(const Dataset& dataset, const AugmentSettings& augment, const PromptEncoder& prompts,
              const PatchOptions& patches) {
    for (const Sample& record : dataset.samples()) {
      const Sample sample = with_longest_prompt(record, augment);
      std::vector<GridThw> grids;
      for (const ImageRef& image : image_refs(sample, patches)) grids.push_back(image.grid_thw);
      // Prompts differ only in image sizes and texts.
      if (!seen_.emplace(std::move(grids), sample.prompt).second) continue;
      const auto length =
          static_cast<int64_t>(make_prompt(sample, 0, &prompts, patches).token_ids.size());
      if (length <= num_tokens) continue;
      num_tokens = length;
      where = sample.where;
    }
  }

 private:
  std::set<std::pair<std::vector<GridThw>, std::string>> seen_;
};

}  // namespace

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
                         const std::vector<const Dataset*>& data, const PromptEncoder& prompts,
                         const PatchOptions& patches) {
  LongestPrompt longest;
  for (const Dataset* dataset : data) longest.update(*dataset, settings.augment, prompts, patches);
  set_max_model_len(options, longest.num_tokens, settings.generation.max_new_tokens, longest.where);
  make_directories(settings.output.run_dir);  // of the engine's log
}

}  // namespace rematch
