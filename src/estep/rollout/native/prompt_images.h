#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "estep/rollout/native/kv_blocks.h"
#include "estep/rollout/native/step.h"
#include "flow/rollout.h"
#include "model/row.h"

namespace rematch {

/// The images behind the prompts that are being answered. Pixels are told apart by content; each image goes through the vision tower once, when
/// the first of its pads is about to be computed, and its features stay until no prompt is left that shows it.
///
/// An image is encoded on its own and by one thread, several images by several threads: what it gives depends neither on the images beside it
/// nor on the number of threads.
class PromptImages {
 public:
  PromptImages(const Qwen3VL& model, PixelGetter pixels);

  /// Announces all prompts that will be shown: what they share is kept for the last of them.
  void expect(std::span<const Prompt> prompts);
  /// Pads of a prompt's images with their content. Loads pixels that were not seen before.
  /// @param prompt  with as many pads as its images need (check_prompt)
  /// @throws UserError (data) when an image's pixels disagree with its reference
  std::vector<ImageSpan> spans(const Prompt& prompt);
  /// Sees to the features of images; all that lack them go through the tower together.
  void encode(std::span<const ContentKey> contents);
  /// Features of one pad. @param pad_idx  of the image. Valid until the image is dropped
  VisualRow visual_row(const ContentKey& content, int64_t pad_idx, int64_t row) const;
  /// The prompt is answered.
  void finish(const Prompt& prompt);

  int64_t num_encoded() const { return num_encoded_; }  ///< images that went through the tower

 private:
  using Reference = std::pair<std::string, std::array<int64_t, 3>>;  ///< an ImageRef as a key
  struct Image {
    int64_t num_uses = 0;                    ///< of prompts not yet answered
    std::shared_ptr<const Patches> patches;  ///< until encoded
    at::Tensor embeds_MH;                    ///< float32 on CPU
    std::vector<at::Tensor> deepstack_MH;
  };
  struct Use {
    int64_t num_left = 0;
    bool is_loaded = false;
    ContentKey content;
  };
  const ContentKey& content_of(const ImageRef& image, const Prompt& prompt);
  void encode_one(Image& image) const;

  const Qwen3VL& model_;
  PixelGetter pixels_;
  std::map<Reference, Use> uses_;
  std::map<ContentKey, Image> images_;
  int64_t num_encoded_ = 0;
};

}  // namespace rematch
