// Operands of an expression: literals and names, and what follows a value: subscripts, calls,
// filters and tests.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "text/jinja/parser.h"

namespace rematch::jinja {

ExprPtr ExpressionParser::primary() {
  const Token token = current();
  ExprPtr value = make(ExprKind::kConst);
  switch (token.kind) {
    case TokenKind::kString: {
      std::string text;
      // adjacent literals are one string
      for (; current().kind == TokenKind::kString; next()) text += current().text;
      value->constant = std::move(text);
      return value;
    }
    case TokenKind::kInteger:
      if (token.text.size() > 18)
        refuse(fmt::format("the large integer {}", token.text.substr(0, 40)));
      value->constant = static_cast<int64_t>(std::strtoll(token.text.c_str(), nullptr, 10));
      next();
      return value;
    case TokenKind::kFloat:
      value->constant = std::strtod(token.text.c_str(), nullptr);
      next();
      return value;
    case TokenKind::kName: break;
    default:
      if (at_operator("[")) return list_literal();
      if (at_operator("{")) return dict_literal();
      if (skip_operator("(")) {
        // () is an empty tuple
        ExprPtr inner = skip_operator(")") ? make(ExprKind::kList) : nullptr;
        if (inner != nullptr) inner->name = "tuple";
        if (inner != nullptr) return inner;
        inner = tuple();
        expect_operator(")");
        return inner;
      }
      fail_at_current("a value");
  }
  if (token.text == "true" || token.text == "True") {
    value->constant = true;
  } else if (token.text == "false" || token.text == "False") {
    value->constant = false;
  } else if (token.text == "none" || token.text == "None") {
    value->constant = None{};
  } else {
    value->kind = ExprKind::kName;
    value->name = token.text;
    for (const char* refused :
         {"cycler", "joiner", "lipsum", "self", "super", "caller", "varargs", "kwargs"}) {
      if (token.text == refused) refuse(fmt::format("the name {}", refused));
    }
    for (const char* reserved : {"and", "or", "in", "is", "if", "else"}) {
      if (token.text == reserved) fail_at_current("a value");
    }
  }
  next();
  return value;
}

ExprPtr ExpressionParser::list_literal() {
  ExprPtr list = make(ExprKind::kList);
  expect_operator("[");
  while (!at_operator("]")) {
    adopt(*list, expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("]");
  return list;
}

ExprPtr ExpressionParser::dict_literal() {
  ExprPtr dict = make(ExprKind::kDict);
  expect_operator("{");
  while (!at_operator("}")) {
    adopt(*dict, expression());
    expect_operator(":");
    adopt(*dict, expression());
    if (!skip_operator(",")) break;
  }
  expect_operator("}");
  return dict;
}

ExprPtr ExpressionParser::postfix(ExprPtr value) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      value = subscript(std::move(value));
    } else if (at_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  ExprPtr call = make(ExprKind::kCall, std::move(callee));
  arguments(*call);
  return call;
}

ExprPtr ExpressionParser::subscript(ExprPtr value) {
  if (skip_operator(".")) {
    if (current().kind == TokenKind::kInteger) {
      ExprPtr item = make(ExprKind::kItem, std::move(value));
      adopt(*item, primary());
      return item;
    }
    if (current().kind != TokenKind::kName) fail_at_current("an attribute name");
    ExprPtr attribute = make(ExprKind::kAttr, std::move(value));
    attribute->name = current().text;
    if (attribute->name.front() == '_')
      refuse(fmt::format("the private attribute {}", attribute->name));
    next();
    return attribute;
  }
  expect_operator("[");
  ExprPtr item = make(ExprKind::kItem, std::move(value));
  ExprPtr parts[3];
  size_t num_colons = 0;
  while (!at_operator("]")) {
    if (skip_operator(":")) {
      if (++num_colons > 2) fail_at_current("']'");
    } else if (parts[num_colons] == nullptr) {
      parts[num_colons] = expression();
    } else {
      if (at_operator(",")) refuse("an index with several values");
      fail_at_current("']'");
    }
  }
  next();
  if (num_colons == 0 && parts[0] == nullptr) fail_at_current("an index");
  adopt(*item, std::move(parts[0]));
  if (num_colons > 0) {
    item->kind = ExprKind::kSlice;
    adopt(*item, std::move(parts[1]));
    adopt(*item, std::move(parts[2]));
  }
  return item;
}

void ExpressionParser::arguments(Expr& call) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (at_operator("*") || at_operator("**")) refuse("a call with * or **");
    if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator &&
        ahead().text == "=") {
      std::string name = current().text;
      next();
      next();
      call.keywords.emplace_back(std::move(name), expression());
      call.height = std::max(call.height, call.keywords.back().second->height + 1);
    } else {
      if (!call.keywords.empty()) fail_at_current("a keyword argument");
      adopt(call, expression());
    }
    if (!skip_operator(",")) break;
  }
  expect_operator(")");
}

ExprPtr ExpressionParser::filters(ExprPtr value) {
  while (true) {
    if (skip_operator("|")) {
      ExprPtr filter = make(ExprKind::kFilter, std::move(value));
      if (current().kind != TokenKind::kName) fail_at_current("a filter name");
      filter->name = current().text;
      if (!is_known_filter(filter->name)) refuse(fmt::format("the filter {}", filter->name));
      next();
      if (at_operator("(")) arguments(*filter);
      value = std::move(filter);
    } else if (skip_name("is")) {
      value = test(std::move(value));
    } else if (at_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::test(ExprPtr value) {
  const bool negated = skip_name("not");
  ExprPtr check = make(ExprKind::kTest, std::move(value));
  if (current().kind != TokenKind::kName) fail_at_current("the name of a test");
  check->name = current().text;
  if (!is_known_test(check->name)) refuse(fmt::format("the test {}", check->name));
  next();
  const TokenKind kind = current().kind;
  const bool starts_argument =
      kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
      at_operator("[") || at_operator("{") ||
      (kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"));
  if (at_operator("(")) {
    arguments(*check);
  } else if (starts_argument) {
    if (at_name("is")) fail_at_current("no second test");
    adopt(*check, postfix(primary()));
  }
  return negated ? make(ExprKind::kNot, std::move(check)) : std::move(check);
}

}  // namespace rematch::jinja
