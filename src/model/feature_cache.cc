#include "model/feature_cache.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>

namespace rematch {
namespace {

// Two independent hashes of pixels and grids: 128 bits, so that two rows of a run never share a key.
std::pair<uint64_t, uint64_t> content_key(const VisionInput& images) {
  uint64_t first = 0x9e3779b97f4a7c15ULL, second = 0xc2b2ae3d27d4eb4fULL;
  const auto mix = [&](uint64_t word) {
    first = (first ^ word) * 0x100000001b3ULL;
    first ^= first >> 29;
    second = (second + word) * 0xff51afd7ed558ccdULL;
    second ^= second >> 32;
  };
  for (const auto& grid : images.grid_thw) {
    for (const int64_t side : grid) mix(static_cast<uint64_t>(side));
  }
  const at::Tensor pixels = images.pixel_values_NC.cpu().contiguous();
  const auto* bytes = static_cast<const char*>(pixels.const_data_ptr());
  const auto num_bytes = static_cast<size_t>(pixels.nbytes());
  for (size_t at = 0; at < num_bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, num_bytes - at));
    mix(word);
  }
  return {first, second};
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
