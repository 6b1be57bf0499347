#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rematch::jinja {

enum class TokenKind {
  kData,           ///< text outside tags, whitespace control already applied
  kBlockBegin,     ///< {%
  kBlockEnd,       ///< %}
  kVariableBegin,  ///< {{
  kVariableEnd,    ///< }}
  kName,
  kString,  ///< text = the value, escapes undone
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

/// Cuts a template into tokens as Jinja2 with trim_blocks and lstrip_blocks does. Comments are
/// dropped.
/// @param source  valid UTF-8
/// @param where   path, for errors
/// @throws UserError (data) with path:line
std::vector<Token> tokenize_template(std::string_view source, const std::string& where);

/// A UserError (data) about line `line` of a template.
[[noreturn]] void template_error(const std::string& where, int line, const std::string& error,
                                 const std::string& what);

/// The same for a construct outside the subset, naming it.
[[noreturn]] void refuse_construct(const std::string& where, int line,
                                   const std::string& construct);

}  // namespace rematch::jinja
