#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "engine/ranks/group.h"

namespace c10d {
class Store;
}

namespace rematch {

/// True if librematch_nccl.so, which is built against a CUDA wheel of torch, can be opened.
bool has_nccl();
/// The reason why has_nccl() is false; empty if it is true.
std::string nccl_problem();
/// Checks that ranks with GPUs can exchange tensors between them.
/// @param device  of this rank
/// @throws UserError (config) for a device that is not a GPU; (environment) if this build has no
/// NCCL
void require_nccl(const at::Device& device);

/// A group of ranks with one GPU each: tensors on the GPU go through the NCCL of torch's wheel,
/// everything else through `host_group`. Returns when all are connected. Call require_nccl() first.
/// @param host_group    the same ranks through host memory.
/// @param store  shared by the ranks, without the keys of an earlier group
/// @param device   of this rank.
/// @param timeout  of one call
/// @throws UserError (environment) if two ranks are on one GPU, or the GPUs cannot reach each other
std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group> host_group,
                                       c10::intrusive_ptr<c10d::Store> store, at::Device device,
                                       std::chrono::seconds timeout);

/// Refuses two ranks on one GPU, which NCCL does not support.
/// @param gpu  unique name of this rank's GPU, independent of the devices that the rank sees
/// @throws UserError (environment) on every rank, naming both ranks and the GPU
void require_own_gpus(Group& group, const std::string& gpu);

}  // namespace rematch
