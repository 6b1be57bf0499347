#include <fmt/core.h>

#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/strings.h"

namespace rematch::jinja {
namespace {

struct TestCall {
  Interpreter& interpreter;
  const std::string& name;
  const Value& value;
  const std::vector<Value>& arguments;
};

int64_t remainder_of(const TestCall& call, int64_t divisor) {
  const int64_t number = integer_argument(fmt::format("the test {}", call.name), call.value);
  if (divisor == 0)
    throw TemplateError{"the chat template divides by zero",
                        fmt::format("{} is {}(0)", number, call.name)};
  return divisor == -1 ? 0 : number % divisor;
}

// A text, list or dict is iterable and a sequence to Python; so is an undefined value.
bool has_items(const TestCall& call) {
  const Value& value = call.value;
  return value.is_string() || value.is_list() || value.is_dict() || value.is_undefined();
}

using Call = const TestCall&;

struct TestRow {
  const char* name;
  size_t num_arguments;
  bool (*holds)(Call);
};

// The ONE table of tests.
constexpr TestRow kTests[] = {
    {"defined", 0, [](Call c) { return !c.value.is_undefined(); }},
    {"undefined", 0, [](Call c) { return c.value.is_undefined(); }},
    {"none", 0, [](Call c) { return c.value.is_none(); }},
    {"string", 0, [](Call c) { return c.value.is_string(); }},
    {"mapping", 0, [](Call c) { return c.value.is_dict(); }},
    {"iterable", 0, has_items},
    {"sequence", 0, has_items},
    {"number", 0, [](Call c) { return c.value.is_number(); }},
    {"integer", 0, [](Call c) { return c.value.is_int(); }},
    {"float", 0, [](Call c) { return c.value.is_float(); }},
    {"boolean", 0, [](Call c) { return c.value.is_bool(); }},
    {"true", 0, [](Call c) { return c.value.is_bool() && c.value.boolean(); }},
    {"false", 0, [](Call c) { return c.value.is_bool() && !c.value.boolean(); }},
    {"callable", 0, [](Call c) { return c.value.is_function(); }},
    {"odd", 0, [](Call c) { return remainder_of(c, 2) != 0; }},
    {"even", 0, [](Call c) { return remainder_of(c, 2) == 0; }},
    {"divisibleby", 1,
     [](Call c) { return remainder_of(c, integer_argument("divisibleby", c.arguments[0])) == 0; }},
    {"in", 1, [](Call c) { return contains(c.interpreter, c.arguments[0], c.value); }},
    {"eq", 1, [](Call c) { return c.value.equals(c.arguments[0]); }},
    {"equalto", 1, [](Call c) { return c.value.equals(c.arguments[0]); }},
    {"ne", 1, [](Call c) { return !c.value.equals(c.arguments[0]); }},
    {"lt", 1, [](Call c) { return order(c.value, c.arguments[0]) < 0; }},
    {"le", 1, [](Call c) { return order(c.value, c.arguments[0]) <= 0; }},
    {"gt", 1, [](Call c) { return order(c.value, c.arguments[0]) > 0; }},
    {"ge", 1, [](Call c) { return order(c.value, c.arguments[0]) >= 0; }},
};

const TestRow* find_test(const std::string& name) {
  const auto row = std::find_if(std::begin(kTests), std::end(kTests),
                                [&](const TestRow& test) { return name == test.name; });
  return row == std::end(kTests) ? nullptr : row;
}

}  // namespace

bool is_known_test(const std::string& name) { return find_test(name) != nullptr; }

bool Interpreter::apply_test(const std::string& name, const Value& value,
                             const Arguments& arguments) {
  spend(value.weight());
  const TestRow* row = find_test(name);
  if (row == nullptr) throw not_implemented(fmt::format("the test {}", name));
  if (arguments.positional.size() != row->num_arguments || !arguments.keywords.empty()) {
    throw TemplateError{
        fmt::format("the test {} of the chat template receives the wrong number of arguments",
                    name),
        fmt::format("{} given, {} expected",
                    arguments.positional.size() + arguments.keywords.size(), row->num_arguments)};
  }
  return row->holds({*this, name, value, arguments.positional});
}

}  // namespace rematch::jinja
