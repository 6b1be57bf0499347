#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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

/// Asks the model for the objects of images: prompts differ in their images and, where a sample has
/// its own user text, in that. Safe to share between threads.
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
  /// @param own_text  user text of the sample (BEHAVIOUR 19.10); empty: user_prompt()
  /// @throws UserError (data) when the template does not write one pad for each image
  /// Cost: linear in the result; the template runs once for each text and number of images.
  std::vector<TokenId> encode(const std::vector<GridThw>& grids,
                              const std::string& own_text = "") const;

  /// Text before pads are expanded, for documentation and dumps. @param own_text  as in encode()
  std::string text(size_t num_images, const std::string& own_text = "") const;

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
  /// Ids with one pad for each image; threads that need the same prompt wait for the first.
  struct Rendered {
    std::mutex mutex;
    std::optional<std::vector<TokenId>> ids;
  };
  Rendered& rendered(size_t num_images, const std::string& own_text) const;

  mutable std::mutex mutex_;
  mutable std::map<std::pair<size_t, std::string>, Rendered> rendered_;
};

}  // namespace rematch
