#include "engine/ranks/frozen_shards.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/ranks/phase.h"

namespace rematch {
namespace {

constexpr int64_t kAlignment = 64;  // bytes

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A PeerStopped that a backward pass lets through.
struct PeerStoppedInBackward : PeerStopped, std::exception {};

at::Tensor make_bytes(int64_t size, const at::Device& device) {
  return at::empty({size}, at::TensorOptions(at::kByte).device(device));
}

// Leaves a buffer for `size` bytes, or puts one in its place that is neither too small nor far too
// large.
void fit(at::Tensor& buffer, int64_t size, const at::Device& device) {
  if (buffer.defined() && size <= buffer.numel() && buffer.numel() <= size + size / 4) return;
  buffer.reset();  // first, so that there are never both
  buffer = make_bytes(size, device);
}

int64_t bytes_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

}  // namespace

size_t FrozenShards::hold(const std::vector<at::Tensor>& tensors, const Read& read) {
  const at::NoGradGuard no_grad;
  std::vector<int64_t> places;
  int64_t size = 0;
  for (const at::Tensor& tensor : tensors) {
    REMATCH_CHECK(tensor.is_contiguous() && tensor.device() == device_, tensor.device().str());
    places.push_back(size);
    size += aligned(bytes_of(tensor));
  }
  const int64_t part_bytes = aligned((size + group_.size() - 1) / group_.size());
  const int64_t block_bytes = part_bytes * group_.size();
  Shard shard{.part = make_bytes(part_bytes, device_).zero_(),
              .storage = c10::Storage(c10::Storage::use_byte_size_t(), block_bytes,
                                      at::DataPtr(nullptr, device_))};
  const int64_t begin = group_.rank() * part_bytes;
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Places and parts are aligned, so no value is cut.
    const int64_t width = static_cast<int64_t>(tensors[i].element_size()),
                  first = std::max(places[i], begin),
                  end = std::min(places[i] + bytes_of(tensors[i]), begin + part_bytes);
    if (first < end) {
      shard.part.narrow(0, first - begin, end - first)
          .copy_(read(i, (first - places[i]) / width, (end - first) / width).view(at::kByte));
    }
    c10::TensorImpl* const tensor = tensors[i].unsafeGetTensorImpl();
    tensor->set_storage_keep_dtype(shard.storage);
    tensor->set_storage_offset(places[i] / width);
  }
  blocks_.push_back(std::move(shard));
  return blocks_.size() - 1;
}

void FrozenShards::need(size_t block) {
  REMATCH_CHECK(block < blocks_.size());
  while (current_ != block) take_turn(block);
}

void FrozenShards::meet() {
  while (take_turn(std::nullopt)) {
  }
}

std::optional<size_t> FrozenShards::take_turn(std::optional<size_t> wish) {
  const at::NoGradGuard no_grad;
  const std::optional<size_t> block = agree(wish);
  if (!block || current_ == block) return block;
  std::optional<Gather> gather = std::exchange(ahead_, std::nullopt);
  if (gather && gather->block != *block) {
    for (const auto& wait : gather->waits) wait();
    if (gather->bytes.device() == device_) spare_ = std::move(gather->bytes);
    gather.reset();
  }
  finish(gather ? *std::move(gather) : start(*block));
  followers_[{previous_, current_}] = *block;
  previous_ = std::exchange(current_, block);
  const auto next = followers_.find({previous_, current_});
  if (next != followers_.end()) ahead_ = start(next->second);
  return block;
}

// The first block that any rank needs.
std::optional<size_t> FrozenShards::agree(std::optional<size_t> wish) {
  std::vector<int64_t> wishes(static_cast<size_t>(group_.size()), 0);  // 0 = none, or 1 + block
  wishes[group_.rank()] = wish ? static_cast<int64_t>(*wish) + 1 : 0;
  try {
    group_.all_reduce(wishes);
  } catch (const PeerStopped&) {
    throw PeerStoppedInBackward{};
  }
  std::erase(wishes, 0);
  if (wishes.empty()) return std::nullopt;
  return static_cast<size_t>(*std::ranges::min_element(wishes) - 1);
}

FrozenShards::Gather FrozenShards::start(size_t block) {
  const at::Device place = group_.message_device();
  const at::Tensor& part = blocks_[block].part;
  const int64_t part_bytes = part.numel();
  Gather gather{.block = block, .bytes = {}, .waits = {}};
  if (place == device_) {
    fit(spare_, part_bytes * group_.size(), device_);
    gather.bytes = std::exchange(spare_, at::Tensor());
  } else {
    gather.bytes = make_bytes(part_bytes * group_.size(), place);
  }
  for (int rank = 0; rank < group_.size(); ++rank) {
    at::Tensor bytes = gather.bytes.narrow(0, rank * part_bytes, part_bytes);
    if (rank == group_.rank()) bytes.copy_(part);
    gather.waits.push_back(group_.start_broadcast(bytes, rank));
  }
  return gather;
}

void FrozenShards::finish(Gather gather) {
  for (const auto& wait : gather.waits) wait();
  Shard& shard = blocks_[gather.block];
  if (current_) blocks_[*current_].storage.set_data_ptr_noswap(at::DataPtr(nullptr, device_));
  if (gather.bytes.device() == device_) {
    spare_ = std::exchange(whole_, std::move(gather.bytes));
  } else {
    fit(whole_, gather.bytes.numel(), device_);
    whole_.narrow(0, 0, gather.bytes.numel()).copy_(gather.bytes);
  }
  shard.storage.set_data_ptr_noswap(at::DataPtr(whole_.mutable_data_ptr(), device_));
}

}  // namespace rematch
