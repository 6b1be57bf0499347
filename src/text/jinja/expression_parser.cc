// Operators of an expression, by precedence; operand_parser.cc has what stands between them.
#include <fmt/core.h>

#include <algorithm>

#include "text/jinja/parser.h"

namespace rematch::jinja {
namespace {

constexpr int kMaxNesting = 100;  // of brackets and prefixes while parsing
constexpr int kMaxHeight = 400;   // of the finished tree

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::kBlockEnd: return "the end of the tag (%})";
    case TokenKind::kVariableEnd: return "the end of the tag (}})";
    case TokenKind::kData:
    case TokenKind::kEnd: return "the end of the template";
    default: return fmt::format("'{}'", token.text.substr(0, 60));
  }
}

}  // namespace

// Counts recursion, so that a hostile template runs out of levels before the stack does.
class ExpressionParser::Nesting {
 public:
  explicit Nesting(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxNesting) {
      template_error(parser_.where_, parser_.current().line,
                     "the chat template's expressions are nested too deeply",
                     fmt::format("more than {} levels", kMaxNesting));
    }
  }
  ~Nesting() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

void ExpressionParser::fail_at_current(const std::string& wanted) const {
  template_error(where_, current().line, "the chat template has wrong syntax",
                 fmt::format("{} instead of {}", described(current()), wanted));
}

bool ExpressionParser::skip_operator(const char* text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(const char* text) {
  if (!at_name(text)) return false;
  next();
  return true;
}

void ExpressionParser::expect_operator(const char* text) {
  if (!skip_operator(text)) fail_at_current(fmt::format("'{}'", text));
}

std::string ExpressionParser::expect_identifier() {
  if (current().kind != TokenKind::kName) fail_at_current("a name");
  for (const char* reserved : {"true", "false", "none", "True", "False", "None", "and", "or", "not",
                               "in", "is", "if", "else"}) {
    if (at_name(reserved)) fail_at_current("a name");
  }
  const std::string name = current().text;
  next();
  return name;
}

// Long chains nest to the left without recursion here, so the height of the tree is bounded where
// it grows.
void ExpressionParser::adopt(Expr& parent, ExprPtr child) const {
  if (child != nullptr) parent.height = std::max(parent.height, child->height + 1);
  parent.args.push_back(std::move(child));
  if (parent.height > kMaxHeight) {
    template_error(where_, parent.line, "the chat template has an expression that is too long",
                   fmt::format("more than {} operations inside each other", kMaxHeight));
  }
}

ExprPtr ExpressionParser::make(ExprKind kind, ExprPtr first) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = current().line;
  if (first != nullptr) {
    expr->line = first->line;
    adopt(*expr, std::move(first));
  }
  return expr;
}

ExprPtr ExpressionParser::binary(ExprKind kind, std::string op, ExprPtr left, ExprPtr right) const {
  ExprPtr expr = make(kind, std::move(left));
  expr->name = std::move(op);
  adopt(*expr, std::move(right));
  return expr;
}

ExprPtr ExpressionParser::expression(bool with_if) {
  const Nesting nesting(*this);
  ExprPtr value = disjunction();
  while (with_if && skip_name("if")) {
    ExprPtr choice = make(ExprKind::kCond, std::move(value));
    adopt(*choice, disjunction());
    adopt(*choice, skip_name("else") ? expression() : nullptr);
    value = std::move(choice);
  }
  return value;
}

ExprPtr ExpressionParser::tuple() {
  ExprPtr value = expression();
  if (!at_operator(",")) return value;
  ExprPtr list = make(ExprKind::kList, std::move(value));
  list->name = "tuple";
  while (skip_operator(",")) {
    if (current().kind == TokenKind::kBlockEnd || current().kind == TokenKind::kVariableEnd ||
        at_operator(")"))
      break;
    adopt(*list, expression());
  }
  return list;
}

ExprPtr ExpressionParser::disjunction() {
  ExprPtr left = conjunction();
  while (skip_name("or")) left = binary(ExprKind::kOr, "or", std::move(left), conjunction());
  return left;
}

ExprPtr ExpressionParser::conjunction() {
  ExprPtr left = negation();
  while (skip_name("and")) left = binary(ExprKind::kAnd, "and", std::move(left), negation());
  return left;
}

ExprPtr ExpressionParser::negation() {
  const Nesting nesting(*this);
  if (skip_name("not")) return make(ExprKind::kNot, negation());
  return comparison();
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr value = sum();
  ExprPtr chain;
  while (true) {
    std::string op;
    for (const char* symbol : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (at_operator(symbol)) op = symbol;
    }
    if (at_name("in")) op = "in";
    if (at_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
      op = "not in";
      next();
    }
    if (op.empty()) break;
    next();
    if (chain == nullptr) chain = make(ExprKind::kCompare, std::move(value));
    chain->ops.push_back(op);
    adopt(*chain, sum());
  }
  return chain != nullptr ? std::move(chain) : std::move(value);
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (at_operator("+") || at_operator("-")) {
    std::string op = current().text;
    next();
    left = binary(ExprKind::kBinary, std::move(op), std::move(left), concatenation());
  }
  return left;
}

ExprPtr ExpressionParser::concatenation() {
  ExprPtr left = product();
  if (!at_operator("~")) return left;
  ExprPtr parts = make(ExprKind::kConcat, std::move(left));
  while (skip_operator("~")) adopt(*parts, product());
  return parts;
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = unary(true);
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%") ||
         at_operator("**")) {
    std::string op = current().text;
    if (op == "**") refuse("the operator **");
    next();
    left = binary(ExprKind::kBinary, std::move(op), std::move(left), unary(true));
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  ExprPtr value;
  if (skip_operator("-")) {
    value = make(ExprKind::kNegate, unary(false));
  } else if (skip_operator("+")) {
    value = make(ExprKind::kPlus, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters(std::move(value)) : std::move(value);
}

}  // namespace rematch::jinja
