// Replaces nccl_group.cc if NCCL's headers or libtorch_cuda are missing.
#include "base/error.h"
#include "ranks/nccl_group.h"

namespace rematch {

bool has_nccl() { return false; }

std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group>, c10::intrusive_ptr<c10d::Store>,
                                       at::Device, std::chrono::seconds) {
  REMATCH_CHECK(false, "require_nccl() refuses this build");
  return nullptr;
}

}  // namespace rematch
