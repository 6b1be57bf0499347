#include "model/feature_cache.h"

#include <c10/core/GradMode.h>
#include <xxhash.h>

#include <memory>

namespace rematch {
namespace {

// 128 bits of pixels and grids, so that two rows of a run never share a key.
std::pair<uint64_t, uint64_t> content_key(const VisionInput& images) {
  const at::Tensor pixels = images.pixel_values_NC.cpu().contiguous();
  const auto state = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), images.grid_thw.data(), images.grid_thw.size() * sizeof(images.grid_thw[0]));
  XXH3_128bits_update(state.get(), pixels.const_data_ptr(), pixels.nbytes());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

int64_t bytes_of(const VisionFeatures& features) {
  auto bytes = static_cast<int64_t>(features.embeds_MH.nbytes());
  for (const at::Tensor& feature : features.deepstack_MH) bytes += static_cast<int64_t>(feature.nbytes());
  return bytes;
}

bool has_graph(const VisionFeatures& features) {
  bool found = features.embeds_MH.requires_grad();
  for (const at::Tensor& feature : features.deepstack_MH) found = found || feature.requires_grad();
  return found;
}

// Grows with every change of a weight of the tower.
int64_t tower_version(const Qwen3VL& model) {
  int64_t version = 0;
  for (const NamedParameter& parameter : model.parameters()) {
    if (parameter.name.starts_with("model.visual.")) version += static_cast<int64_t>(parameter.tensor._version());
  }
  return version;
}

}  // namespace

VisionFeatures FeatureCache::features(const Qwen3VL& model, const VisionInput& images) {
  if (images.grid_thw.empty() || !images.pixel_values_NC.defined() || !at::GradMode::is_enabled()) return model.encode_images(images);
  const int64_t version = tower_version(model);
  if (version != weights_version_) clear();
  weights_version_ = version;
  const Key key = content_key(images);
  if (const auto found = rows_.find(key); found != rows_.end()) {
    ++num_hits_;
    return found->second;
  }
  VisionFeatures features = model.encode_images(images);
  const int64_t bytes = bytes_of(features);
  if (has_graph(features) || bytes_ + bytes > options_.max_bytes) return features;
  bytes_ += bytes;
  rows_.emplace(key, features);
  return features;
}

void FeatureCache::clear() {
  rows_.clear();
  bytes_ = 0;
}

}  // namespace rematch
