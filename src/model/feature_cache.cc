#include "model/feature_cache.h"

#include <c10/core/GradMode.h>

namespace rematch {
namespace {

ContentKey content_key(const VisionInput& images) {
  const at::Tensor pixels = images.pixel_values_NC.cpu().contiguous();
  ContentHasher hasher;
  hasher.feed(images.grid_thw.data(), images.grid_thw.size() * sizeof(images.grid_thw[0]));
  hasher.feed(pixels.const_data_ptr(), pixels.nbytes());
  return hasher.key();
}

int64_t count_bytes(const VisionFeatures& features) {
  auto bytes = static_cast<int64_t>(features.embeds_MH.nbytes());
  for (const at::Tensor& feature : features.deepstack_MH)
    bytes += static_cast<int64_t>(feature.nbytes());
  return bytes;
}

bool has_graph(const VisionFeatures& features) {
  bool found = features.embeds_MH.requires_grad();
  for (const at::Tensor& feature : features.deepstack_MH) found = found || feature.requires_grad();
  return found;
}

VisionFeatures copy(const VisionFeatures& features) {
  VisionFeatures copied{features.embeds_MH.clone(), {}};
  for (const at::Tensor& feature : features.deepstack_MH)
    copied.deepstack_MH.push_back(feature.clone());
  return copied;
}

// Increases with every change of a weight of the tower.
int64_t tower_version(const Model& model) {
  int64_t version = 0;
  for (const NamedParameter& parameter : model.parameters()) {
    if (model.description().part_of(parameter.name) != ParameterPart::kLlm)
      version += static_cast<int64_t>(parameter.tensor._version());
  }
  return version;
}

}  // namespace

VisionFeatures FeatureCache::features(const Model& model, const VisionInput& images) {
  if (images.grid_thw.empty() || !images.pixel_values_NC.defined() || !at::GradMode::is_enabled())
    return model.encode_images(images);
  const int64_t version = tower_version(model);
  if (version != weights_version_) clear();
  weights_version_ = version;
  const ContentKey key = content_key(images);
  if (const auto found = rows_.find(key); found != rows_.end()) return copy(found->second);
  VisionFeatures features = model.encode_images(images);
  const int64_t bytes = count_bytes(features);
  if (has_graph(features) || bytes_ + bytes > options_.max_bytes) return features;
  bytes_ += bytes;
  rows_.emplace(key, copy(features));
  return features;
}

void FeatureCache::clear() {
  rows_.clear();
  bytes_ = 0;
}

}  // namespace rematch
