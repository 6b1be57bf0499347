#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace rematch {

class JinjaTemplate;

/// The chat template of a checkpoint with the special tokens that it may use. Immutable after
/// loading, safe to share between threads.
class ChatTemplate {
 public:
  /// Reads the template of a model directory from the first of processor_config.json (key
  /// `chat_template`), chat_template.json (same key), chat_template.jinja, tokenizer_config.json
  /// (same key; from a list of named templates, `default`), as transformers' processor does.
  /// @throws UserError (data) if there is none, or with the line of a syntax error or of a
  /// construct that is not implemented
  /// @source MODEL 8
  static ChatTemplate load(const std::string& model_dir);

  /// Parses a template without special tokens.
  /// @param where  its name in errors
  static ChatTemplate from_text(const std::string& source, const std::string& where);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Renders a conversation.
  /// @param messages  list of {role, content, …}; content is a string or a list of parts such as
  /// {type: image} and {type: text, text}
  /// @param add_generation_prompt  appends the opening of the assistant's turn
  /// @param extra  object with more variables for the template (tools, …), or null
  /// @throws UserError (data) for malformed messages, or if the template refuses them
  std::string render(const Json& messages, bool add_generation_prompt, const Json& extra) const;
  std::string render(const Json& messages, bool add_generation_prompt) const;

  /// True if the source of the template contains the name of a variable.
  bool mentions(const std::string& variable) const {
    return source_.find(variable) != std::string::npos;
  }
  /// The file of the template.
  const std::string& where() const { return where_; }
  /// Warnings about files with different templates.
  const Strings& warnings() const { return warnings_; }

 private:
  ChatTemplate();
  std::string where_, source_;
  Strings warnings_;
  std::unique_ptr<JinjaTemplate> template_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace rematch
