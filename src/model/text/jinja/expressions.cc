// Operators by precedence, operands, and the filters and tests that follow them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "model/text/jinja/parser.h"

namespace rematch::jinja {
namespace {

constexpr int kNotLevel = 3, kComparisonLevel = 4, kRefusedLevel = 8;

// A higher level binds tighter.
struct Operator {
  std::string_view text;
  int level;
};

constexpr Operator kOperators[] = {{"or", 1}, {"and", 2}, {"==", 4}, {"!=", 4}, {"<=", 4},
                                   {">=", 4}, {"<", 4},   {">", 4},  {"in", 4}, {"not", 4},
                                   {"+", 5},  {"-", 5},   {"~", 6},  {"**", 8}, {"*", 8},
                                   {"%", 7},  {"/", 8}};

List values_of(Run& run, const std::vector<Code>& codes) {
  List values;
  for (const Code code : codes) values.push_back(run(code));
  return values;
}

// Members of a dict or a namespace.
Dict members_of(Run& run, const Arguments& arguments) {
  Dict members;
  for (const auto& [key, code] : arguments) {
    put(members, key, run(code));
  }
  return members;
}

}  // namespace

bool is_reserved(std::string_view word) {
  static constexpr std::string_view kWords[] = {"and", "or", "not", "in", "is", "if", "else"};
  return word.empty() || (word[0] >= '0' && word[0] <= '9') ||
         std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

Value named_constant(std::string_view word) {
  if (word == "true" || word == "True") return true;
  if (word == "false" || word == "False") return false;
  return word == "none" || word == "None" ? Value::none() : Value();
}

std::vector<Code> bind_arguments(const Arguments& arguments, const Strings& parameters,
                                 const std::string& callee, int line) {
  std::vector<Code> bound(parameters.size(), nullptr);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& [keyword, code] = arguments[i];
    const auto known = std::ranges::find(parameters, keyword);
    const size_t slot = keyword.empty() ? i : static_cast<size_t>(known - parameters.begin());
    if (slot >= bound.size() || bound[slot] != nullptr)
      throw unsupported(fmt::format("the argument {} of {}",
                                    keyword.empty() ? std::to_string(i + 1) : keyword, callee),
                        line);
    bound[slot] = code;
  }
  return bound;
}

Code Parser::expression() {
  enter();
  Code value = binary_expression(1);
  while (skip("if")) {
    const Code chosen = value, condition = binary_expression(1);
    const Code otherwise = skip("else") ? expression() : nullptr;
    value = add([=](Run& run) {
      if (run(condition).truthy()) return run(chosen);
      return otherwise != nullptr ? run(otherwise) : Value::undefined("an if without else");
    });
  }
  --depth_;
  return value;
}

// Operators of this level and higher ones.
Code Parser::binary_expression(int lowest_level) {
  enter();
  Code left = nullptr;
  if (lowest_level <= kNotLevel && skip("not")) {
    const Code value = binary_expression(kNotLevel);
    left = add([=](Run& run) { return !run(value).truthy(); });
  } else {
    left = unary();
  }
  for (bool was_compared = false;;) {
    if (end_size() > 0) break;
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const Operator& known) { return at(known.text); });
    if (found == std::end(kOperators) || found->level < lowest_level) break;
    if (found->level == kRefusedLevel) refuse(fmt::format("the operator {}", found->text));
    std::string op(found->text);
    skip(op);
    if (op == "not") {
      expect("in");
      op = "not in";
    }
    if (found->level == kComparisonLevel && std::exchange(was_compared, true))
      refuse("a chain of comparisons");
    const Code first = left, second = binary_expression(found->level + 1);
    left = add([=, is_logical = found->level < kNotLevel](Run& run) {
      Value value = run(first);
      if (is_logical && value.truthy() != (op == "and")) return value;
      return is_logical ? run(second) : binary(op, value, run(second));
    });
  }
  --depth_;
  return left;
}

Code Parser::unary() {
  const bool is_negated = skip("-");
  const Code value = postfix(primary());
  if (!is_negated) return filters(value);
  return filters(add([=](Run& run) { return binary("-", int64_t{0}, run(value)); }));
}

Code Parser::primary() {
  const char c = peek();
  if (c == '\'' || c == '"') {
    const std::string text = string_literal();
    return add([=](Run&) { return Value(text); });
  }
  if (c >= '0' && c <= '9') {
    const std::string digits = take_word();
    if (digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 18 ||
        at("."))
      refuse(fmt::format("the number {}", digits.substr(0, 40)));
    const int64_t value = std::strtoll(digits.c_str(), nullptr, 10);
    return add([=](Run&) { return Value(value); });
  }
  if (skip("(")) {
    const Code value = expression();
    expect(")");
    return value;
  }
  if (skip("[")) return list_literal();
  return skip("{") ? dict_literal() : named_expression();
}

Code Parser::list_literal() {
  std::vector<Code> codes;
  while (!at("]")) {
    codes.push_back(expression());
    if (!skip(",")) break;
  }
  expect("]");
  return add([=](Run& run) { return values_of(run, codes); });
}

Code Parser::dict_literal() {
  Arguments members;
  while (!at("}")) {
    const char c = peek();
    if (c != '\'' && c != '"') refuse("a dict key that is not a string");
    members.emplace_back(string_literal(), nullptr);
    expect(":");
    members.back().second = expression();
    if (!skip(",")) break;
  }
  expect("}");
  return add([=](Run& run) { return members_of(run, members); });
}

Code Parser::named_expression() {
  if (is_reserved(word())) fail_here("a value");
  const std::string name = take_word();
  for (const char* refused : {"cycler", "joiner", "lipsum", "dict", "self", "super", "caller",
                              "varargs", "kwargs", "range"}) {
    if (name == refused) refuse(fmt::format("the name {}", name));
  }
  if (const Value value = named_constant(name); !value.is_absent())
    return add([=](Run&) { return Value(value); });
  if (at("(")) return call(name);
  return add([=](Run& run) { return run.look_up(name); });
}

Code Parser::postfix(Code value) {
  while (true) {
    if (skip(".")) {
      value = attribute(value);
    } else if (skip("[")) {
      value = subscript(value);
    } else {
      return value;
    }
  }
}

Code Parser::attribute(Code object) {
  const std::string name = take_word();
  if (is_reserved(name)) fail_here("an attribute name");
  if (name[0] == '_') refuse(fmt::format("the private attribute {}", name));
  if (!at("(")) return add([=](Run& run) { return attribute_of(run(object), name); });
  return application(Table::kMethods, name, object);
}

Code Parser::subscript(Code value) {
  const Code first = at(":") ? nullptr : expression();
  if (skip("]"))
    return add([=](Run& run) {
      const Value object = run(value);
      return item_of(object, run(first));
    });
  expect(":");
  if (first == nullptr && skip(":")) {
    if (!skip("-") || take_word() != "1") refuse("a slice with a step other than -1");
    expect("]");
    return add([=](Run& run) { return reverse(run(value)); });
  }
  const Code last = at("]") ? nullptr : expression();
  expect("]");
  return add([=](Run& run) {
    const Value object = run(value), begin = run(first);
    return slice_of(object, begin, run(last));
  });
}

Code Parser::call(const std::string& name) {
  const int begin = line();
  if (find_builtin(Table::kFunctions, name) != nullptr && name != "namespace")
    return application(Table::kFunctions, name, nullptr);
  const Arguments given = arguments();
  if (name == "namespace") {
    if (!given.empty() && given[0].first.empty()) refuse("namespace with a dict");
    return add([=](Run& run) { return Value(members_of(run, given), Type::kNamespace); });
  }
  return add(
      [=](Run& run) {
        const Value value = run.look_up(name);
        if (!value.is(Type::kMacro)) throw wrong_type("calls", value);
        return run.call(value.macro(), bind_arguments(given, value.macro().parameters,
                                                      "the macro " + name, begin));
      },
      begin);
}

Code Parser::filters(Code value) {
  while (true) {
    if (skip("|")) {
      value = application(Table::kFilters, take_word(), value);
    } else if (skip("is")) {
      const bool is_negated = skip("not");
      const Code holds = application(Table::kTests, take_word(), value);
      if (at("is")) fail_here("no second test");
      value = is_negated ? add([=](Run& run) { return !run(holds).truthy(); }) : holds;
    } else {
      return value;
    }
  }
}

// A filter, test, method or function: its name is passed, its arguments follow, if there are any.
Code Parser::application(Table table, const std::string& name, Code self) {
  static constexpr const char* kKinds[] = {"filter", "test", "method", "function"};
  const std::string callee = fmt::format("the {} {}", kKinds[static_cast<size_t>(table)], name);
  const int begin = line();
  const Builtin* builtin = find_builtin(table, name);
  if (builtin == nullptr) refuse(callee);
  Arguments given;
  if (at("(")) {
    given = arguments();
  } else if (table == Table::kTests && !builtin->parameters.empty()) {
    given.emplace_back("", postfix(primary()));
  }
  const std::vector<Code> codes = bind_arguments(given, builtin->parameters, callee, begin);
  return add(
      [=](Run& run) {
        const Value object = run(self);
        const Type receiver = name == "get" || name == "items" ? Type::kDict : Type::kText;
        if (table == Table::kMethods && !object.is(receiver))
          throw wrong_type(fmt::format("calls {} of", callee), object);
        return builtin->apply({object, values_of(run, codes)});
      },
      begin);
}

Arguments Parser::arguments() {
  Arguments given;
  expect("(");
  while (!at(")")) {
    const bool has_keyword = at_keyword();
    given.emplace_back(has_keyword ? take_word() : "", nullptr);
    if (has_keyword) expect("=");
    given.back().second = expression();
    if (!skip(",")) break;
  }
  expect(")");
  return given;
}

}  // namespace rematch::jinja
