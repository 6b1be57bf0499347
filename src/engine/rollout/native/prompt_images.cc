#include "engine/rollout/native/prompt_images.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "engine/rollout/native/cpu/vision.h"
#include "engine/rollout/padded_batch.h"

namespace rematch {
namespace {

ContentKey content_key(const Patches& patches) {
  ContentHasher hasher;
  hasher.feed_value(patches.grid_thw);
  hasher.feed(patches.pixel_values.data(), patches.pixel_values.size() * sizeof(float));
  hasher.feed(patches.levels.data(), patches.levels.size());
  return hasher.key();
}

}  // namespace

ImageEncoder make_cpu_encoder(std::shared_ptr<const Model> model) {
  const auto vision = std::make_shared<CpuVision>(std::move(model));
  return {.refresh = [vision] { vision->refresh(); },
          .encode =
              [vision](std::span<const Patches* const> images) {
                std::vector<CpuVision::Image> pixels;
                for (const Patches* patches : images)
                  pixels.push_back({patches->pixel_values.data(), patches->grid_thw});
                return vision->encode(pixels);
              },
          .release = [vision] { vision->release(); }};
}

ImageEncoder make_aten_encoder(std::shared_ptr<const Model> model) {
  const auto encode = [model = std::move(model)](std::span<const Patches* const> images) {
    const at::NoGradGuard no_grad;
    std::vector<VisionFeatures> features;
    for (const Patches* patches : images)
      features.push_back(model->encode_images(view_image(*patches)));
    return features;
  };
  return {.refresh = [] {}, .encode = encode, .release = [] {}};
}

void PromptImages::expect(std::span<const Prompt> prompts) {
  for (const Prompt& prompt : prompts) {
    for (const ImageRef& image : prompt.images) ++uses_[image].num_left;
  }
}

const ContentKey& PromptImages::load_content(const ImageRef& image, const Prompt& prompt) {
  Use& use = uses_.at(image);
  if (use.is_loaded) return use.content;
  std::shared_ptr<const Patches> patches = load_patches(prompt, image, pixels_);
  if (patches->row_width != model_.vision.patch_width()) {
    throw data_error(
        {.error = "image patches do not match the model",
         .where = sample_name(prompt.sample_id, prompt.where),
         .what = fmt::format("{}: a patch has {} values, the vision tower expects {}", image.path,
                             patches->row_width, model_.vision.patch_width()),
         .fix = "make patches with the preprocessor_config.json of the model directory"});
  }
  use.content = content_key(*patches);
  use.is_loaded = true;
  Image& known = images_[use.content];
  known.num_uses += use.num_left;
  if (!known.features.embeds_MH.defined()) known.patches = std::move(patches);
  return use.content;
}

std::vector<ImageSpan> PromptImages::spans(const Prompt& prompt) {
  const auto pad_id = static_cast<int>(model_.image_token_id);
  std::vector<ImageSpan> spans;
  auto at = prompt.token_ids.begin();
  for (const ImageRef& image : prompt.images) {
    const int64_t num_pads = model_.vision.num_tokens(image.grid_thw);
    at = std::find(at, prompt.token_ids.end(), pad_id);
    spans.push_back({at - prompt.token_ids.begin(), num_pads, load_content(image, prompt)});
    REMATCH_CHECK(spans.back().first_token + num_pads <= std::ssize(prompt.token_ids),
                  prompt.where);
    at += num_pads;
  }
  return spans;
}

void PromptImages::encode(std::span<const ContentKey> contents) {
  const std::set<ContentKey> shown(contents.begin(), contents.end());
  for (auto& [content, image] : images_) {
    const at::Tensor& embeds_MH = image.features.embeds_MH;
    if (embeds_MH.defined() && !embeds_MH.is_cpu() && !shown.contains(content)) image.features = {};
  }
  std::set<Image*> wanted;
  for (const ContentKey& content : contents) {
    Image& image = images_.at(content);
    if (!image.features.embeds_MH.defined()) wanted.insert(&image);
  }
  if (wanted.empty()) return;
  std::vector<const Patches*> patches;
  for (const Image* image : wanted) patches.push_back(image->patches.get());
  std::vector<VisionFeatures> all = encoder_.encode(patches);
  auto features = all.begin();
  for (Image* image : wanted) {
    image->features = std::move(*features++);
    if (image->features.embeds_MH.is_cpu()) image->patches.reset();
    ++num_encoded_;
  }
}

VisualRow PromptImages::visual_row(const ContentKey& content, int64_t pad_idx, int64_t row) const {
  const VisionFeatures& image = images_.at(content).features;
  const auto row_of = [&](const at::Tensor& features_MH) {
    return features_MH.const_data_ptr<float>() + pad_idx * features_MH.size(1);
  };
  REMATCH_CHECK(image.embeds_MH.defined() && pad_idx < image.embeds_MH.size(0),
                fmt::format("pad {}", pad_idx));
  VisualRow visual{.row = row, .deepstack_H = {}, .image = &image, .pad_idx = pad_idx};
  if (!image.embeds_MH.is_cpu() || image.embeds_MH.scalar_type() != at::kFloat) return visual;
  visual.embed_H = row_of(image.embeds_MH);
  for (const at::Tensor& feature : image.deepstack_MH)
    visual.deepstack_H.push_back(row_of(feature));
  return visual;
}

void PromptImages::finish(const Prompt& prompt) {
  for (const ImageRef& image : prompt.images) {
    const auto use = uses_.find(image);
    REMATCH_CHECK(use != uses_.end() && use->second.is_loaded, prompt.where);
    const auto shown = images_.find(use->second.content);
    if (--shown->second.num_uses == 0) images_.erase(shown);
    if (--use->second.num_left == 0) uses_.erase(use);
  }
}

}  // namespace rematch
