#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/rollout.h"
#include "engine/rollout/native/kv_blocks.h"
#include "engine/rollout/native/step.h"
#include "model/row.h"

namespace rematch {

/// Computes the features of images.
struct ImageEncoder {
  std::function<void()> refresh;  ///< reads the training weights; call it before the first image
  /// The features stay where they are computed, in the dtype that the engine's steps read.
  std::function<std::vector<VisionFeatures>(std::span<const Patches* const> images)> encode;
  std::function<void()> release;  ///< releases memory; call refresh() before the next image
};

/// The vision tower on the CPU kernels; the features of an image depend only on its pixels.
ImageEncoder make_cpu_encoder(std::shared_ptr<const Model> model);
/// The vision tower on ATen operators, on any device.
ImageEncoder make_aten_encoder(std::shared_ptr<const Model> model);

/// The images of the prompts being answered, identified by the content of their pixels. Each is
/// encoded just before its first pad is computed. Its features are kept on a CPU until no prompt
/// needs them, on a device while its pads are computed; if they are needed again, it is encoded
/// again.
class PromptImages {
 public:
  PromptImages(const ModelDescription& model, PixelGetter pixels, const ImageEncoder& encoder)
      : model_(model), pixels_(std::move(pixels)), encoder_(encoder) {}

  /// Announces all prompts, so that a shared image is kept until its last prompt.
  void expect(std::span<const Prompt> prompts);
  /// Position and content of the images of a prompt. Loads pixels on first use.
  /// @param prompt  with as many pads as its images need (check_prompt)
  /// @throws UserError (data) when an image's pixels disagree with its reference
  std::vector<ImageSpan> spans(const Prompt& prompt);
  /// Computes features of the images of a step that have none, and drops those of other images on
  /// a device.
  void encode(std::span<const ContentKey> contents);
  /// Features of pad `pad_idx` of an image. Valid until the next
  /// encode() or finish() of its last prompt
  VisualRow visual_row(const ContentKey& content, int64_t pad_idx, int64_t row) const;
  /// Drops the images of an answered prompt that no other prompt needs.
  void finish(const Prompt& prompt);

  int64_t num_encoded() const { return num_encoded_; }  ///< images encoded by the tower

 private:
  struct Image {
    int64_t num_uses = 0;                    ///< by prompts not yet answered
    std::shared_ptr<const Patches> patches;  ///< on a CPU until encoded
    VisionFeatures features;
  };
  struct Use {
    int64_t num_left = 0;
    bool is_loaded = false;
    ContentKey content;
  };
  const ContentKey& load_content(const ImageRef& image, const Prompt& prompt);

  const ModelDescription& model_;
  PixelGetter pixels_;
  const ImageEncoder& encoder_;
  std::map<ImageRef, Use> uses_;
  std::map<ContentKey, Image> images_;
  int64_t num_encoded_ = 0;
};

}  // namespace rematch
