#include <fmt/core.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "dist/meeting.h"
#include "dist/nccl_group.h"

namespace rematch {

void require_own_gpus(Group& group, const std::string& gpu) {
  const std::vector<std::string> hosts = group.all_gather(host_name()), gpus = group.all_gather(gpu);
  std::map<std::pair<std::string, std::string>, int> taken;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    const auto [found, is_free] = taken.emplace(std::pair{hosts[r], gpus[r]}, rank);
    if (is_free) continue;
    throw UserError(ErrorKind::kEnvironment,
                    {.error = "two ranks are on one GPU, which NCCL does not allow",
                     .where = fmt::format("ranks {} and {} on {}", found->second, rank, hosts[r]),
                     .what = fmt::format("both are on GPU {}", gpus[r]),
                     .fix = "start as many ranks as there are GPUs, let --device choose, or set `training.ddp_backend: gloo`"});
  }
}

}  // namespace rematch
