#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flow/grid.h"
#include "flow/token.h"
#include "settings/data.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rematch {

/// Image pads of an image: t·h·w / merge².
/// @throws UserError (data) when h or w is not a multiple of `merge_size`, or a side is not
/// positive
int64_t num_image_pads(const GridThw& grid, int merge_size);

/// Replaces the i-th `pad_id` of `token_ids` by as many as the i-th grid needs.
/// @param where  the template's path, for errors
/// @throws UserError (data) when the numbers of pads and grids differ
std::vector<TokenId> expand_image_pads(const std::vector<TokenId>& token_ids, TokenId pad_id,
                                       const std::vector<GridThw>& grids, int merge_size,
                                       const std::string& where);

/// The words of a prompt.
struct PromptTexts {
  std::string system;  ///< empty = no system message
  std::string user;
};

/// Asks the model for the objects of images: the prompt of every sample is the same except for its
/// images. Safe to share between threads.
class PromptEncoder {
 public:
  struct Options {
    PromptSettings texts;
    PromptTexts built_in;  ///< where `texts` has none: those of the answer format
    int merge_size = 2;    ///< spatial merge of the vision tower
  };

  /// @throws UserError (config) when a prompt is blank, not UTF-8 or holds the text of an added
  /// token; (data) when the tokenizer has no `<|image_pad|>`
  PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const ChatTemplate> chat_template, const Options& options);

  /// Prompt ids up to the opening of the assistant's turn: system, then user (images first, then
  /// text), every pad expanded.
  /// @param grids  one for each image, in order; may be empty
  /// @throws UserError (data) when the template does not write one pad for each image
  /// Cost: linear in the result; the template runs once for each number of images.
  std::vector<TokenId> encode(const std::vector<GridThw>& grids) const;

  /// Text before pads are expanded, for documentation and dumps.
  std::string text(size_t num_images) const;

  const std::string& system_prompt() const { return system_prompt_; }
  const std::string& user_prompt() const { return user_prompt_; }
  /// Id of `<|image_pad|>`.
  TokenId image_pad_id() const { return image_pad_id_; }
  /// Warnings to show the user once (see ChatTemplate::warnings).
  const std::vector<std::string>& warnings() const { return chat_template_->warnings(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  int merge_size_;
  std::string system_prompt_;
  std::string user_prompt_;
  TokenId image_pad_id_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::vector<TokenId>> ids_of_num_images_;  // one pad for each image
};

}  // namespace rematch
