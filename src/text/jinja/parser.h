#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace rematch::jinja {

/// Builds the tree of a template. @throws UserError (data) with path:line for wrong syntax and for
/// constructs outside the subset, by name
Body parse_template(const std::vector<Token>& tokens, const std::string& where);

/// Parses the expressions of tags; the statement parser drives it.
class ExpressionParser {
 public:
  ExpressionParser(const std::vector<Token>& tokens, const std::string& where)
      : tokens_(tokens), where_(where) {}

  /// An expression with the inline `if`; `with_if` false leaves a following `if` alone (the value
  /// that a for iterates over).
  ExprPtr expression(bool with_if = true);
  /// Expressions separated by commas become one list (as `set a = 1, 2` does).
  ExprPtr tuple();
  /// The filters after a value, for `set x | trim`.
  ExprPtr filters(ExprPtr value);

  const Token& current() const { return tokens_[pos_]; }
  const Token& ahead(size_t count = 1) const {
    return tokens_[std::min(pos_ + count, tokens_.size() - 1)];
  }
  void next() { pos_ = std::min(pos_ + 1, tokens_.size() - 1); }
  bool at_operator(const char* text) const {
    return current().kind == TokenKind::kOperator && current().text == text;
  }
  bool at_name(const char* text) const {
    return current().kind == TokenKind::kName && current().text == text;
  }
  /// Moves on when the operator is there.
  bool skip_operator(const char* text);
  bool skip_name(const char* text);
  void expect_operator(const char* text);
  /// The current token as an identifier that may be assigned to.
  std::string expect_identifier();
  [[noreturn]] void fail_at_current(const std::string& wanted) const;
  [[noreturn]] void refuse(const std::string& construct) const {
    refuse_construct(where_, current().line, construct);
  }

 private:
  class Nesting;
  void adopt(Expr& parent, ExprPtr child) const;
  ExprPtr make(ExprKind kind, ExprPtr first = nullptr) const;
  ExprPtr binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right) const;
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr value);
  ExprPtr call(ExprPtr callee);
  ExprPtr subscript(ExprPtr value);
  ExprPtr test(ExprPtr value);
  ExprPtr list_literal();
  ExprPtr dict_literal();
  void arguments(Expr& call);

  const std::vector<Token>& tokens_;
  const std::string& where_;
  size_t pos_ = 0;
  int depth_ = 0;
};

/// Names that the subset has; everything else is refused when a template is read.
bool is_known_filter(const std::string& name);
bool is_known_test(const std::string& name);

}  // namespace rematch::jinja
