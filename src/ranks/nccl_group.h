#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "ranks/group.h"

namespace c10d {
class Store;
}

namespace rematch {

/// True when this build has NCCL: its headers and libtorch_cuda were there.
bool has_nccl();
/// Refuses `training.ddp_backend: nccl` where it cannot be. @param device  of a rank
/// @throws UserError (config) for a device that is no GPU; (environment) when this build has no
/// NCCL
void require_nccl(const at::Device& device);

/// Ranks with a GPU each: tensors on it travel by the NCCL of torch's wheel, everything else over
/// `words`. Returns when all are connected.
/// @param words    the same ranks over the host. @param store  shared by the ranks, without the
/// keys of an earlier group
/// @param device   of this rank. @param timeout  of one call
/// @throws UserError (environment) when two ranks are on one GPU, or the GPUs cannot reach each
/// other. After require_nccl()
std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group> words,
                                       c10::intrusive_ptr<c10d::Store> store, at::Device device,
                                       std::chrono::seconds timeout);

/// Refuses two ranks on one GPU, which NCCL cannot serve. @param gpu  of this rank: what no other
/// GPU is called, whatever it sees of them
/// @throws UserError (environment) on every rank, naming both ranks and the GPU
void require_own_gpus(Group& group, const std::string& gpu);

}  // namespace rematch
