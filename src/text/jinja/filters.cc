#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/strings.h"

namespace rematch::jinja {
namespace {

using Bound = std::vector<std::optional<Value>>;

// The inputs of a filter: the value before the bar and the arguments bound to its parameters.
struct FilterCall {
  Interpreter& interpreter;
  const std::string& name;
  const Value& value;
  const Arguments& arguments;

  Bound bind(const std::vector<std::string>& parameters) const {
    return bind_arguments("the filter " + name, arguments, parameters);
  }
  std::string text() const { return interpreter.text_of(value); }
  Value text_value(std::string result) const { return interpreter.text_value(std::move(result)); }
};

std::string text_argument(const FilterCall& call, const std::optional<Value>& value,
                          const std::string& fallback) {
  return value.has_value() ? call.interpreter.text_of(*value) : fallback;
}

Value length(const FilterCall& call) {
  call.bind({});
  const Value& value = call.value;
  call.interpreter.spend(value.weight());
  if (value.is_undefined()) return int64_t{0};
  if (value.is_string()) return static_cast<int64_t>(characters(value.text()).size());
  if (value.is_list()) return static_cast<int64_t>(value.list().size());
  if (value.is_dict()) return static_cast<int64_t>(value.dict().size());
  throw TemplateError{fmt::format("the chat template takes the length of a {}", value.type_name()),
                      value.repr()};
}

Value to_json_text(const FilterCall& call) {
  const Bound bound = call.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  int indent = -1;
  if (is_given(bound[1])) {
    indent =
        static_cast<int>(std::clamp<int64_t>(integer_argument("tojson(indent)", *bound[1]), 0, 64));
  }
  if (is_given(bound[2])) throw not_implemented("tojson with separators");
  call.interpreter.spend(call.value.weight());
  std::string text = python_json(call.value.to_json(is_true(bound[3])), indent);
  if (is_true(bound[0])) text = escape_non_ascii(text);
  return call.text_value(std::move(text));
}

Value joined(const FilterCall& call) {
  const Bound bound = call.bind({"d", "attribute"});
  const std::string separator = text_argument(call, bound[0], "");
  std::string text;
  bool first = true;
  for (const Value& item : call.interpreter.items_of(call.value)) {
    if (!first) text += separator;
    first = false;
    const bool by_attribute = is_given(bound[1]);
    text += call.interpreter.text_of(
        by_attribute ? call.interpreter.attribute(item, call.interpreter.text_of(*bound[1]))
                     : item);
    call.interpreter.spend(separator.size() / 64 + 1);
    if (text.size() > (16u << 20))
      throw TemplateError{"the chat template joins a string that is too long", "more than 16 MiB"};
  }
  return call.text_value(std::move(text));
}

Value replaced(const FilterCall& call) {
  const Bound bound = call.bind({"old", "new", "count"});
  throw_if_missing("the filter replace", bound[0], "old");
  throw_if_missing("the filter replace", bound[1], "new");
  const int64_t count = is_given(bound[2]) ? integer_argument("replace", *bound[2]) : -1;
  return call.text_value(replace_text(call.interpreter, call.text(),
                                      call.interpreter.text_of(*bound[0]),
                                      call.interpreter.text_of(*bound[1]), count));
}

Value trimmed(const FilterCall& call) {
  const Bound bound = call.bind({"chars"});
  const bool has_chars = is_given(bound[0]);
  return call.text_value(strip_text(
      call.interpreter, call.text(),
      has_chars ? std::optional(call.interpreter.text_of(*bound[0])) : std::nullopt, true, true));
}

Value first_or_last(const FilterCall& call) {
  call.bind({});
  const List items = call.interpreter.items_of(call.value);
  if (items.empty()) return Undefined{fmt::format("No {} item, sequence was empty.", call.name)};
  return call.name == "first" ? items.front() : items.back();
}

Value reversed(const FilterCall& call) {
  call.bind({});
  List items = call.interpreter.items_of(call.value);
  std::reverse(items.begin(), items.end());
  if (!call.value.is_string()) return items;
  std::string text;
  for (const Value& item : items) text += item.text();
  return call.text_value(std::move(text));
}

Value pairs(const FilterCall& call) {
  call.bind({});
  if (call.value.is_undefined()) return List{};
  if (!call.value.is_dict()) {
    throw TemplateError{
        fmt::format("the chat template takes the items of a {}", call.value.type_name()),
        "items needs a dict"};
  }
  return call_method(call.interpreter, call.value, "items", {});
}

Value default_value(const FilterCall& call) {
  const Bound bound = call.bind({"default_value", "boolean"});
  const bool by_truth = is_true(bound[1]);
  if (!call.value.is_undefined() && !(by_truth && !call.value.truthy())) return call.value;
  return bound[0].has_value() ? *bound[0] : Value(std::string());
}

// int and float: what cannot be read becomes the default.
Value to_number(const FilterCall& call) {
  const bool to_int = call.name == "int";
  const Bound bound = call.bind(to_int ? std::vector<std::string>{"default", "base"}
                                       : std::vector<std::string>{"default"});
  if (to_int && bound[1].has_value()) throw not_implemented("int with a base");
  Value fallback = bound[0].has_value() ? *bound[0] : to_int ? Value(int64_t{0}) : Value(0.0);
  const Value& value = call.value;
  if (value.is_int() || value.is_bool())
    return to_int ? Value(value.integer()) : Value(value.real());
  double real = 0.0;
  if (value.is_float()) {
    real = value.real();
  } else {
    if (!value.is_string()) return fallback;
    const std::string text = python_strip(value.text());
    if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string::npos)
      return fallback;
    char* end = nullptr;
    if (to_int && text.find_first_of(".eE") == std::string::npos) {
      errno = 0;
      const long long whole = std::strtoll(text.c_str(), &end, 10);
      if (*end == '\0' && errno == ERANGE) throw not_implemented("an integer beyond 64 bits");
      return *end == '\0' ? Value(static_cast<int64_t>(whole)) : fallback;
    }
    real = std::strtod(text.c_str(), &end);
    if (*end != '\0') return fallback;
  }
  if (!to_int) return real;
  if (!std::isfinite(real)) return fallback;
  if (std::abs(real) >= 9.2e18) throw not_implemented("an integer beyond 64 bits");
  return static_cast<int64_t>(real);
}

Value absolute(const FilterCall& call) {
  call.bind({});
  if (!call.value.is_number()) {
    throw TemplateError{fmt::format("the chat template takes abs of a {}", call.value.type_name()),
                        call.value.repr()};
  }
  if (call.value.is_float()) return std::abs(call.value.real());
  if (call.value.integer() == INT64_MIN) throw not_implemented("an integer beyond 64 bits");
  return std::abs(call.value.integer());
}

Value indented(const FilterCall& call) {
  const Bound bound = call.bind({"width", "first", "blank"});
  std::string indent = "    ";
  if (bound[0].has_value()) {
    indent = bound[0]->is_string()
                 ? bound[0]->text()
                 : std::string(static_cast<size_t>(std::clamp<int64_t>(
                                   integer_argument("indent", *bound[0]), 0, 1000)),
                               ' ');
  }
  const bool blank = is_true(bound[2]);
  std::string text = is_true(bound[1]) ? indent : "";
  bool is_first = true;
  // Because the reference adds a newline before it splits, the lines are those between newlines.
  for (const std::string& line : split(call.text(), '\n')) {
    call.interpreter.spend(1 + indent.size() / 64);
    if (!is_first) text += "\n" + (line.empty() && !blank ? "" : indent);
    text += line;
    is_first = false;
  }
  return call.text_value(std::move(text));
}

Value mapped(const FilterCall& call) {
  List items = call.interpreter.items_of(call.value);
  const auto& keywords = call.arguments.keywords;
  if (call.arguments.positional.empty()) {
    const Bound bound = call.bind({"attribute", "default"});
    throw_if_missing("the filter map", bound[0], "attribute or a filter name");
    const std::string name = call.interpreter.text_of(*bound[0]);
    if (name.find('.') != std::string::npos) throw not_implemented("map over an attribute path");
    for (Value& item : items) {
      Value found = call.interpreter.attribute(item, name);
      if (found.is_undefined() && bound[1].has_value()) found = *bound[1];
      item = std::move(found);
    }
    return items;
  }
  const std::string filter = call.interpreter.text_of(call.arguments.positional.front());
  if (!is_known_filter(filter)) throw not_implemented(fmt::format("the filter {}", filter));
  const Arguments rest{{call.arguments.positional.begin() + 1, call.arguments.positional.end()},
                       keywords};
  for (Value& item : items) item = call.interpreter.apply_filter(filter, item, rest);
  return items;
}

// select, reject, selectattr, rejectattr.
Value selected(const FilterCall& call) {
  const bool by_attribute = call.name.ends_with("attr");
  const bool wanted = call.name.starts_with("select");
  const auto& given = call.arguments.positional;
  const size_t skip = by_attribute ? 1 : 0;
  if (!call.arguments.keywords.empty() || given.size() < skip)
    throw not_implemented(fmt::format("{} with these arguments", call.name));
  const std::string attribute = by_attribute ? call.interpreter.text_of(given[0]) : "";
  if (attribute.find('.') != std::string::npos)
    throw not_implemented(fmt::format("{} with an attribute path", call.name));
  const std::string test = given.size() > skip ? call.interpreter.text_of(given[skip]) : "";
  if (!test.empty() && !is_known_test(test))
    throw not_implemented(fmt::format("the test {}", test));
  Arguments rest;
  if (given.size() > skip + 1)
    rest.positional.assign(given.begin() + static_cast<std::ptrdiff_t>(skip) + 1, given.end());
  List kept;
  for (const Value& item : call.interpreter.items_of(call.value)) {
    const Value subject = by_attribute ? call.interpreter.attribute(item, attribute) : item;
    const bool holds =
        test.empty() ? subject.truthy() : call.interpreter.apply_test(test, subject, rest);
    if (holds == wanted) kept.push_back(item);
  }
  return kept;
}

Value as_text(const FilterCall& call) {
  call.bind({});
  return call.text_value(call.text());
}
Value as_list(const FilterCall& call) {
  call.bind({});
  return call.interpreter.items_of(call.value);
}
Value changed_case(const FilterCall& call) {
  call.bind({});
  return call.text_value(
      change_case(call.text(), call.name == "title" ? "title filter" : call.name));
}

struct FilterRow {
  const char* name;
  Value (*apply)(const FilterCall&);
};

// The ONE table of filters. `safe` changes nothing because nothing is escaped.
constexpr FilterRow kFilters[] = {
    {"abs", absolute},          {"capitalize", changed_case},
    {"count", length},          {"d", default_value},
    {"default", default_value}, {"first", first_or_last},
    {"float", to_number},       {"indent", indented},
    {"int", to_number},         {"items", pairs},
    {"join", joined},           {"last", first_or_last},
    {"length", length},         {"list", as_list},
    {"lower", changed_case},    {"map", mapped},
    {"reject", selected},       {"rejectattr", selected},
    {"replace", replaced},      {"reverse", reversed},
    {"safe", as_text},          {"select", selected},
    {"selectattr", selected},   {"string", as_text},
    {"title", changed_case},    {"tojson", to_json_text},
    {"trim", trimmed},          {"upper", changed_case},
};

const FilterRow* find_filter(const std::string& name) {
  const auto row = std::find_if(std::begin(kFilters), std::end(kFilters),
                                [&](const FilterRow& filter) { return name == filter.name; });
  return row == std::end(kFilters) ? nullptr : row;
}

}  // namespace

bool is_known_filter(const std::string& name) { return find_filter(name) != nullptr; }

Value Interpreter::apply_filter(const std::string& name, const Value& value,
                                const Arguments& arguments) {
  spend(1);
  const FilterRow* row = find_filter(name);
  if (row == nullptr) throw not_implemented(fmt::format("the filter {}", name));
  return row->apply({*this, name, value, arguments});
}

std::vector<std::optional<Value>> bind_arguments(const std::string& callee,
                                                 const Arguments& arguments,
                                                 const std::vector<std::string>& parameters) {
  if (arguments.positional.size() > parameters.size()) {
    throw TemplateError{
        fmt::format("{} of the chat template receives too many arguments", callee),
        fmt::format("{} given, at most {}", arguments.positional.size(), parameters.size())};
  }
  std::vector<std::optional<Value>> bound(parameters.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto parameter = std::find(parameters.begin(), parameters.end(), name);
    if (parameter == parameters.end()) {
      throw TemplateError{fmt::format("{} of the chat template has no argument {}", callee, name),
                          join(parameters, ", ")};
    }
    auto& slot = bound[static_cast<size_t>(parameter - parameters.begin())];
    if (slot.has_value())
      throw TemplateError{fmt::format("{} of the chat template receives {} twice", callee, name),
                          value.str()};
    slot = value;
  }
  return bound;
}

}  // namespace rematch::jinja
