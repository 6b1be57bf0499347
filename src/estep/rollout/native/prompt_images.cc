#include "estep/rollout/native/prompt_images.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {
namespace {

ContentKey content_key(const Patches& patches) {
  const auto state = std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)>(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), patches.grid_thw.data(), sizeof(patches.grid_thw));
  XXH3_128bits_update(state.get(), patches.pixel_values.data(), patches.pixel_values.size() * sizeof(float));
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

at::Tensor on_cpu(const at::Tensor& features) { return features.to(at::kCPU, at::kFloat).contiguous(); }

}  // namespace

PromptImages::PromptImages(const Qwen3VL& model, PixelGetter pixels) : model_(model), pixels_(std::move(pixels)) {}

void PromptImages::expect(std::span<const Prompt> prompts) {
  for (const Prompt& prompt : prompts) {
    for (const ImageRef& image : prompt.images) ++uses_[{image.path, image.grid_thw}].num_left;
  }
}

const ContentKey& PromptImages::content_of(const ImageRef& image, const Prompt& prompt) {
  Use& use = uses_.at({image.path, image.grid_thw});
  if (use.is_loaded) return use.content;
  std::shared_ptr<const Patches> patches = pixels_(image);
  if (patches->grid_thw != image.grid_thw) {
    throw UserError(ErrorKind::kData,
                    {.error = "an image is not of the size that its prompt was made for",
                     .where = fmt::format("sample {} ({})", prompt.sample_id, prompt.where),
                     .what = fmt::format("{}: {}x{} patches, prompt says {}x{}", image.path, patches->grid_thw[1], patches->grid_thw[2],
                                         image.grid_thw[1], image.grid_thw[2]),
                     .fix = "do not change image files during a run"});
  }
  use.content = content_key(*patches);
  use.is_loaded = true;
  Image& known = images_[use.content];
  known.num_uses += use.num_left;
  if (!known.embeds_MH.defined()) known.patches = std::move(patches);
  return use.content;
}

std::vector<ImageSpan> PromptImages::spans(const Prompt& prompt) {
  const int64_t merge = model_.config().vision.spatial_merge_size;
  const auto pad_id = static_cast<int>(model_.config().image_token_id);
  std::vector<ImageSpan> spans;
  auto at = prompt.token_ids.begin();
  for (const ImageRef& image : prompt.images) {
    const int64_t num_pads = image.grid_thw[0] * image.grid_thw[1] * image.grid_thw[2] / (merge * merge);
    at = std::find(at, prompt.token_ids.end(), pad_id);
    spans.push_back({at - prompt.token_ids.begin(), num_pads, content_of(image, prompt)});
    REMATCH_CHECK(spans.back().first_token + num_pads <= static_cast<int64_t>(prompt.token_ids.size()), prompt.where);
    at += num_pads;
  }
  return spans;
}

void PromptImages::encode(std::span<const ContentKey> contents) {
  std::vector<Image*> missing;
  for (const ContentKey& content : contents) {
    Image& image = images_.at(content);
    if (!image.embeds_MH.defined() && std::find(missing.begin(), missing.end(), &image) == missing.end()) missing.push_back(&image);
  }
  if (missing.empty()) return;
  num_encoded_ += static_cast<int64_t>(missing.size());
  if (!model_.device().is_cpu()) {
    for (Image* image : missing) encode_one(*image);
    return;
  }
  // Inside a parallel region operators use one thread. The second, empty task makes a region of a single image too.
  const auto encode_some = [&](int64_t first, int64_t end) {
    at::parallel_for(first, std::max(end, first + 2), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < std::min(to, end); ++i) encode_one(*missing[static_cast<size_t>(i)]);
    });
  };
  // The first image alone lets an adapter merge its weights before several threads read them.
  const int64_t num_first = model_.adapter() ? 1 : 0, num_images = static_cast<int64_t>(missing.size());
  if (num_first > 0) encode_some(0, num_first);
  if (num_first < num_images) encode_some(num_first, num_images);
}

void PromptImages::encode_one(Image& image) const {
  const at::NoGradGuard no_grad;  // of this thread
  // from_blob takes a mutable pointer; the tower only reads.
  float* const values = const_cast<float*>(image.patches->pixel_values.data());
  const VisionInput input{.pixel_values_NC = at::from_blob(values, {image.patches->num_rows(), image.patches->row_width}, at::kFloat),
                          .grid_thw = {image.patches->grid_thw}};
  const VisionFeatures features = model_.encode_images(input);
  image.embeds_MH = on_cpu(features.embeds_MH);
  for (const at::Tensor& feature : features.deepstack_MH) image.deepstack_MH.push_back(on_cpu(feature));
  image.patches.reset();
}

VisualRow PromptImages::visual_row(const ContentKey& content, int64_t pad_idx, int64_t row) const {
  const Image& image = images_.at(content);
  const auto row_of = [&](const at::Tensor& features_MH) {
    return features_MH.const_data_ptr<float>() + pad_idx * features_MH.size(1);
  };
  REMATCH_CHECK(image.embeds_MH.defined() && pad_idx < image.embeds_MH.size(0), fmt::format("pad {}", pad_idx));
  VisualRow visual{.row = row, .embed_H = row_of(image.embeds_MH), .deepstack_H = {}};
  for (const at::Tensor& feature : image.deepstack_MH) visual.deepstack_H.push_back(row_of(feature));
  return visual;
}

void PromptImages::finish(const Prompt& prompt) {
  for (const ImageRef& image : prompt.images) {
    const auto use = uses_.find({image.path, image.grid_thw});
    REMATCH_CHECK(use != uses_.end() && use->second.is_loaded, prompt.where);
    const auto shown = images_.find(use->second.content);
    if (--shown->second.num_uses == 0) images_.erase(shown);
    if (--use->second.num_left == 0) uses_.erase(use);
  }
}

}  // namespace rematch
