#include "model/text/prompt.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kVariablesTurnedOff[] = {"enable_thinking"};

void check_prompt(const std::string& prompt, const std::string& key, const Tokenizer& tokenizer) {
  const auto fail = [&](const std::string& error, const std::string& what, const std::string& fix) {
    throw config_error({.error = error, .where = key, .what = what, .fix = fix});
  };
  if (!is_valid_utf8(prompt))
    fail("the prompt is not UTF-8", fmt::format("{} bytes", prompt.size()), "save it as UTF-8");
  if (python_strip(prompt).empty()) {
    fail("the prompt is blank", fmt::format("{} characters", prompt.size()),
         fmt::format("write a prompt, or remove {} to use the built-in one", key));
  }
  if (const std::string found = tokenizer.find_added_token(prompt); !found.empty()) {
    fail("the prompt contains the text of an added token", fmt::format("'{}'", found),
         "describe the token in other words");
  }
}

Json make_messages(const std::string& system, const std::string& user, size_t num_images) {
  Json parts = Json::array();
  for (size_t i = 0; i < num_images; ++i) parts.push_back({{"type", "image"}});
  parts.push_back({{"type", "text"}, {"text", user}});
  Json messages = Json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", std::move(parts)}});
  return messages;
}

}  // namespace

int64_t num_image_pads(const GridThw& grid, int merge_size) {
  const bool fits = grid[0] > 0 && grid[1] > 0 && grid[2] > 0 && grid[1] % merge_size == 0 &&
                    grid[2] % merge_size == 0;
  if (!fits) {
    throw data_error(
        {.error = "an image cannot be divided into merged patches",
         .where = "image grid",
         .what = fmt::format("{} x {} x {} patches, merge size {}", grid[0], grid[1], grid[2],
                             merge_size),
         .fix = "use images whose sides are multiples of patch size times merge size"});
  }
  return grid[0] * (grid[1] / merge_size) * (grid[2] / merge_size);
}

std::vector<TokenId> expand_image_pads(const std::vector<TokenId>& token_ids, TokenId pad_id,
                                       const std::vector<GridThw>& grids, int merge_size,
                                       const std::string& where) {
  const auto num_pads = static_cast<size_t>(std::ranges::count(token_ids, pad_id));
  if (num_pads != grids.size()) {
    throw data_error({.error = "the rendered prompt does not have one image pad per image",
                      .where = where,
                      .what = fmt::format("{} pads, {} images", num_pads, grids.size()),
                      .fix = "pass as many images as the messages have image parts, and use the "
                             "chat template of a vision model"});
  }
  std::vector<TokenId> expanded;
  size_t image = 0;
  for (const TokenId id : token_ids) {
    expanded.insert(
        expanded.end(),
        id == pad_id ? static_cast<size_t>(num_image_pads(grids[image++], merge_size)) : 1, id);
  }
  return expanded;
}

PromptEncoder::PromptEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                             std::shared_ptr<const ChatTemplate> chat_template,
                             const Options& options)
    : tokenizer_(std::move(tokenizer)),
      chat_template_(std::move(chat_template)),
      merge_size_(options.merge_size) {
  REMATCH_CHECK(merge_size_ >= 1, fmt::format("merge_size {}", merge_size_));
  system_prompt_ = options.texts.system_prompt.value_or(options.built_in.system);
  user_prompt_ = options.texts.user_prompt.value_or(options.built_in.user);
  if (options.texts.system_prompt || !system_prompt_.empty())
    check_prompt(system_prompt_, "template.system", *tokenizer_);
  check_prompt(user_prompt_, "custom.user_prompt", *tokenizer_);
  for (const char* variable : kVariablesTurnedOff) {
    if (chat_template_->mentions(variable)) template_variables_[variable] = false;
  }
  const std::optional<TokenId> pad = tokenizer_->token_id("<|image_pad|>");
  if (!pad.has_value()) {
    throw data_error({.error = "the tokenizer has no <|image_pad|>",
                      .where = chat_template_->where(),
                      .what = "it is not the tokenizer of a vision model",
                      .fix = "use the tokenizer.json of a vision-language checkpoint"});
  }
  image_pad_id_ = *pad;
}

std::string PromptEncoder::text(size_t num_images, const std::string& own_text) const {
  const std::string& user = own_text.empty() ? user_prompt_ : own_text;
  return chat_template_->render(make_messages(system_prompt_, user, num_images), true,
                                Json(template_variables_));
}

PromptEncoder::Rendered& PromptEncoder::find_rendered(size_t num_images,
                                                      const std::string& own_text) const {
  const std::lock_guard lock(mutex_);
  return rendered_[{num_images, own_text}];
}

std::vector<TokenId> PromptEncoder::encode(const std::vector<GridThw>& grids,
                                           const std::string& own_text) const {
  Rendered& prompt = find_rendered(grids.size(), own_text);
  {
    const std::lock_guard lock(prompt.mutex);
    if (!prompt.ids) prompt.ids = tokenizer_->encode(text(grids.size(), own_text));
  }
  return expand_image_pads(*prompt.ids, image_pad_id_, grids, merge_size_, chat_template_->where());
}

}  // namespace rematch
