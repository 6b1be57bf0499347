#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <string>

#include "dist/group.h"

namespace c10d {
class Store;
}

namespace rematch {

/// True when this build has NCCL: its headers and libtorch_cuda were there.
bool has_nccl();

/// Ranks with a GPU each: tensors on it travel by the NCCL of torch's wheel, everything else over `words`. Returns when all are connected.
/// @param words    the same ranks over the host. @param store  shared by the ranks, without the keys of an earlier group
/// @param device   of this rank. @param timeout  of one call
/// @throws UserError (environment) when this build has no NCCL, or the GPUs cannot reach each other
std::unique_ptr<Group> make_nccl_group(std::unique_ptr<Group> words, c10::intrusive_ptr<c10d::Store> store, at::Device device,
                                       std::chrono::seconds timeout);

/// Refuses two ranks on one GPU, which NCCL cannot serve. @param gpu  of this rank, as its host names it (physical_gpu())
/// @throws UserError (environment) on every rank, naming both ranks and the GPU
void require_own_gpus(Group& group, const std::string& gpu);

}  // namespace rematch
