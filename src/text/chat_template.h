#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace rematch {

class JinjaTemplate;

/// A checkpoint's own chat template with the special tokens that it may name. Immutable after
/// loading, safe to share between threads.
class ChatTemplate {
 public:
  /// Reads the template of a model directory in the processor's order: processor_config.json (key
  /// `chat_template`), chat_template.json (same key), chat_template.jinja, tokenizer_config.json
  /// (same key; of named ones `default`).
  /// @throws UserError (data) when there is none, or for wrong syntax and constructs that are not
  /// implemented (named, with the line)
  /// @source MODEL 8
  static ChatTemplate load(const std::string& model_dir);

  /// A template from text, without special tokens. @param where  its name in errors
  static ChatTemplate from_text(const std::string& source, const std::string& where);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Text of a conversation.
  /// @param messages  a list of {role, content, …}; content is a string or a list of parts such as
  /// {type: image} and {type: text, text}
  /// @param add_generation_prompt  ends with the opening of the assistant's turn
  /// @param extra  an object with more names for the template (tools, …), or null
  /// @throws UserError (data) for malformed messages, and for those that the template refuses
  std::string render(const Json& messages, bool add_generation_prompt, const Json& extra) const;
  std::string render(const Json& messages, bool add_generation_prompt) const;

  /// The file that the template comes from.
  const std::string& where() const { return where_; }
  /// Warnings for the user: two files hold different templates.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  ChatTemplate();
  std::string where_;
  std::vector<std::string> warnings_;
  std::unique_ptr<JinjaTemplate> template_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace rematch
