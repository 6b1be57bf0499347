// In place of nccl_group.cc where NCCL's headers or libtorch_cuda are missing.
#include "base/error.h"
#include "dist/nccl_group.h"

namespace rematch {

bool has_nccl() { return false; }

std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group>, c10::intrusive_ptr<c10d::Store>, at::Device, std::chrono::seconds) {
  throw UserError(ErrorKind::kEnvironment,
                  {.error = "this build has no NCCL",
                   .where = "training.ddp_backend",
                   .what = "nccl.h, the headers of CUDA or libtorch_cuda were missing when it was built",
                   .fix = "set `training.ddp_backend: gloo`, or build with a CUDA wheel of torch and the headers that "
                          "docs/distributed.md names"});
}

}  // namespace rematch
