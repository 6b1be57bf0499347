#include "model/sampled_hash.h"

#include "base/content_key.h"

namespace rematch {
namespace {

constexpr int64_t kBlock = 4096;  // hashed at the start of each stride
constexpr int64_t kStride = 16 * kBlock;
constexpr int64_t kWhole = int64_t{1} << 20;

std::string hash_bytes(const at::Tensor& bytes) {
  return content_hash_of({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
}

}  // namespace

std::string sampled_hash(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous().view({-1}).view(at::kByte);
  const int64_t num_bytes = flat.numel();
  if (num_bytes <= kWhole) return hash_bytes(flat.cpu());
  const int64_t num_blocks = num_bytes / kStride;
  const at::Tensor blocks = flat.narrow(0, 0, num_blocks * kStride)
                                .view({num_blocks, kStride})
                                .narrow(1, 0, kBlock)
                                .contiguous()
                                .cpu();
  const at::Tensor rest = flat.narrow(0, num_blocks * kStride, num_bytes % kStride).cpu();
  return hash_bytes(blocks) + hash_bytes(rest);
}

}  // namespace rematch
