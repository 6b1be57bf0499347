#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/grid.h"
#include "base/flow/token.h"
#include "base/settings/data.h"
#include "model/text/chat_template.h"
#include "model/text/stored_prompt.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Number of image pads of an image: t·h·w / merge².
/// @throws UserError (data) if h or w is not a multiple of `merge_size`, or a side is not positive
int64_t num_image_pads(const GridThw& grid, int merge_size);

/// Repeats the i-th `pad_id` in `token_ids` as often as the i-th grid needs.
/// @param where  the template's path, for errors
/// @throws UserError (data) if the numbers of pads and grids differ
std::vector<TokenId> expand_image_pads(const std::vector<TokenId>& token_ids, TokenId pad_id,
                                       const std::vector<GridThw>& grids, int merge_size,
                                       const std::string& where);

/// The texts of a prompt.
struct PromptTexts {
  std::string system;  ///< empty = no system message
  std::string user;
};

/// Encodes prompts that ask for the objects of images. Prompts differ in their images and, for
/// samples with a user text, in that text. Safe to share between threads.
class PromptEncoder {
 public:
  struct Options {
    PromptSettings texts;
    PromptTexts built_in;  ///< texts of the answer format, for those that `texts` does not set
    int merge_size = 2;    ///< spatial merge of the vision tower
  };

  /// @throws UserError (config) if a prompt is blank, not UTF-8 or contains the text of an added
  /// token; (data) if the tokenizer has no `<|image_pad|>`
  PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                std::shared_ptr<const ChatTemplate> chat_template, const Options& options);

  /// Encodes a prompt up to the opening of the assistant's turn: system, then user (images, then
  /// text), with expanded pads. Cost: linear in the result; the template runs once per text and
  /// number of images.
  /// @param grids  one per image, in order; may be empty
  /// @param own_text  user text of the sample (BEHAVIOUR 19.10); empty: user_prompt()
  /// @throws UserError (data) if the template does not write one pad per image
  std::vector<TokenId> encode(const std::vector<GridThw>& grids,
                              const std::string& own_text = "") const;

  /// The text of a prompt before pads are expanded.
  /// @param own_text  as in encode()
  std::string text(size_t num_images, const std::string& own_text = "") const;

  /// Variables that every prompt passes to the template, among those that it mentions: thinking is
  /// turned off explicitly, because published templates of one family have different defaults. What
  /// the template then writes at the opening of the turn belongs to the prompt.
  const TemplateVariables& template_variables() const { return template_variables_; }
  const std::string& system_prompt() const { return system_prompt_; }
  const std::string& user_prompt() const { return user_prompt_; }
  /// Warnings for the user (ChatTemplate::warnings).
  const Strings& warnings() const { return chat_template_->warnings(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  int merge_size_;
  std::string system_prompt_;
  std::string user_prompt_;
  TemplateVariables template_variables_;
  TokenId image_pad_id_ = 0;
  /// Ids with one pad per image. The first thread that needs a prompt renders it, others wait.
  struct Rendered {
    std::mutex mutex;
    std::optional<std::vector<TokenId>> ids;
  };
  Rendered& find_rendered(size_t num_images, const std::string& own_text) const;

  mutable std::mutex mutex_;
  mutable std::map<std::pair<size_t, std::string>, Rendered> rendered_;
};

}  // namespace rematch
