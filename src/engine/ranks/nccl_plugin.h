#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

#include "engine/ranks/group.h"

namespace c10d {
class Store;
}

namespace rematch {

// The interface of librematch_nccl.so. It takes torch's symbols and ours from the program.

inline constexpr const char* kNcclPluginFile = "librematch_nccl.so";
/// Changes with this file and with Group.
inline constexpr int kNcclPluginAbi = 2;

/// Arguments of make_nccl_group().
struct NcclGroupParts {
  std::unique_ptr<Group> host_group;
  c10::intrusive_ptr<c10d::Store> store;
  at::Device device;
  std::chrono::seconds timeout;
};

using NcclPluginAbi = int (*)();  ///< rematch_nccl_plugin_abi
using NcclPluginMake = void (*)(NcclGroupParts,
                                std::unique_ptr<Group>&);  ///< rematch_nccl_plugin_make

}  // namespace rematch
