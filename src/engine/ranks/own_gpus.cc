#include <fmt/core.h>

#include <map>

#include "base/error.h"
#include "base/host_memory.h"
#include "engine/ranks/device.h"
#include "engine/ranks/nccl_group.h"

namespace rematch {

void require_nccl(const at::Device& device) {
  if (!device.is_cuda()) {
    throw config_error({.error = "`training.ddp_backend: nccl` needs a GPU for each rank",
                        .where = "training.ddp_backend",
                        .what = "this rank computes on " + describe_device(device),
                        .fix = "set `training.ddp_backend: gloo`"});
  }
  if (has_nccl()) return;
  throw environment_error(
      {.error = "this build has no NCCL, which exchanges gradients between GPUs",
       .where = "training.ddp_backend",
       .what = nccl_problem(),
       .fix = "build with a CUDA wheel of torch and the headers that docs/distributed.md names, or "
              "set `training.ddp_backend: gloo`, which sends them over the host: seconds to "
              "minutes a step"});
}

void require_own_gpus(Group& group, const std::string& gpu) {
  const Strings gpus = group.all_gather(fmt::format("{} on {}", gpu, host_name()));
  std::map<std::string, int> taken;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& place = gpus[rank];
    const auto [found, is_free] = taken.emplace(place, rank);
    if (is_free) continue;
    throw environment_error(
        {.error = "two ranks are on one GPU, which NCCL does not allow",
         .where = fmt::format("ranks {} and {}", found->second, rank),
         .what = fmt::format("both are on {}", place),
         .fix = "start as many ranks as there are GPUs, let --device choose, or set "
                "`training.ddp_backend: gloo`"});
  }
}

}  // namespace rematch
