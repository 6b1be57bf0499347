// The tables of filters, tests, methods and functions.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/text/jinja/cursor.h"
#include "model/text/jinja/run.h"

namespace rematch::jinja {
namespace {

constexpr size_t kMaxParts = 1'000'000;

const std::string& text_of(const Value& value) {
  if (!value.is_text()) throw wrong_type("takes as a text", value);
  return value.text();
}

// Markup escapes whatever is put into it.
std::string self_text(Call c) {
  if (c.self.is(Type::kSafe)) throw unsupported("a change of text after the filter safe");
  return c.self.str();
}

Value strip_text(Call c, bool left, bool right) {
  const bool has_chars = !c.args[0].is_absent() && !c.args[0].is(Type::kNone);
  const std::string text = self_text(c);
  return strip(text, left, right, has_chars ? &text_of(c.args[0]) : nullptr);
}

Value join(const std::string& separator, const List& items) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    out += (i > 0 ? separator : "") + items[i].str();
    if (out.size() > kMaxTextBytes) throw over_limit("bytes of text", kMaxTextBytes);
  }
  return out;
}

List parts_of(const std::string& text, const std::string& separator, int64_t max_cuts) {
  if (separator.empty()) throw unsupported("a search for an empty text");
  List parts;
  size_t begin = 0;
  for (size_t at = 0; max_cuts-- != 0; begin = at + separator.size()) {
    at = find_text(text, separator, begin);
    if (at == std::string::npos) break;
    if (parts.size() == kMaxParts) throw over_limit("parts of a text", kMaxParts);
    parts.push_back(text.substr(begin, at - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Value replace(Call c) {
  const List parts = parts_of(self_text(c), text_of(c.args[0]), -1);
  return join(text_of(c.args[1]), parts);
}

List split(Call c) {
  return parts_of(c.self.text(), text_of(c.args[0]), integer_of(c.args[1], -1));
}

Value with_default(Call c) {
  const bool is_replaced = c.self.is(Type::kUndefined) || (c.args[1].truthy() && !c.self.truthy());
  if (!is_replaced) return c.self;
  return c.args[0].is_absent() ? Value(std::string()) : c.args[0];
}

Value to_json(Call c) {
  const int64_t indent = integer_of(c.args[1], -1);
  // Indented text is longer than the value.
  const size_t size = c.self.weight() * c.self.depth() * static_cast<size_t>(indent + 1);
  if (c.args[0].truthy() || indent < -1 || indent > 16 || size > kMaxTextBytes)
    throw unsupported("tojson with these arguments");
  return python_json(c.self.to_json(), static_cast<int>(indent));
}

List pairs(Call c) {
  if (c.self.is(Type::kUndefined)) return {};
  if (!c.self.is(Type::kDict)) throw wrong_type("takes the items of", c.self);
  List pairs;
  for (const auto& [key, value] : c.self.members()) pairs.push_back(List{key, value});
  return pairs;
}

// The attribute that a filter names.
Value named_attribute(const Value& item, const Value& name) {
  if (text_of(name).find('.') != std::string::npos) throw unsupported("a path of attributes");
  return attribute_of(item, name.text());
}

List map_items(Call c) {
  List items;
  for (const Value& item : c.self.truthy() ? items_of(c.self) : List())
    items.push_back(named_attribute(item, c.args[0]));
  return items;
}

// selectattr and rejectattr: the name, a test and its argument.
List select_items(Call c, bool wanted) {
  const std::string test = c.args[1].is_absent() ? "" : text_of(c.args[1]);
  const Builtin* row = find_builtin(Table::kTests, test);
  if (!test.empty() && row == nullptr) throw unsupported("the test " + test);
  List kept;
  for (const Value& item : c.self.truthy() ? items_of(c.self) : List()) {
    const Value value = named_attribute(item, c.args[0]);
    const Value holds = row == nullptr ? value : row->apply({value, {c.args[2]}});
    if (holds.truthy() == wanted) kept.push_back(item);
  }
  return kept;
}

Value get_member(Call c) {
  const Value* found = c.args[0].is_text() ? find(c.self.members(), c.args[0].text()) : nullptr;
  return found != nullptr ? *found : c.args[1].is_absent() ? Value::none() : c.args[1];
}

Value length(Call c) {
  if (!c.self.is_text()) return static_cast<int64_t>(items_of(c.self).size());
  // Continuation bytes do not count.
  return static_cast<int64_t>(std::count_if(c.self.text().begin(), c.self.text().end(),
                                            [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool is_equal(Call c) { return c.self.equals(c.args[0]); }

bool has_items(Call c) {
  return c.self.is_text() || c.self.is(Type::kList) || c.self.is(Type::kDict) ||
         c.self.is(Type::kUndefined);
}

std::vector<Builtin> make_filters() {
  return {
      {"default", with_default, {"default_value", "boolean"}},
      {"items", pairs},
      {"join",
       [](Call c) {
         const std::string separator = c.args[0].is_absent() ? "" : text_of(c.args[0]);
         return join(separator, items_of(c.self));
       },
       {"d"}},
      {"length", length},
      {"list", [](Call c) { return items_of(c.self); }},
      {"map", map_items, {"attribute"}},
      {"rejectattr", [](Call c) { return select_items(c, false); }, {"", "", ""}},
      {"replace", replace, {"old", "new"}},
      {"safe", [](Call c) { return Value(c.self.str(), Type::kSafe); }},
      {"selectattr", [](Call c) { return select_items(c, true); }, {"", "", ""}},
      {"string", [](Call c) { return c.self.is_text() ? c.self : Value(c.self.str()); }},
      {"tojson", to_json, {"ensure_ascii", "indent"}},
      {"trim", [](Call c) { return strip_text(c, true, true); }, {"chars"}},
  };
}

std::vector<Builtin> make_tests() {
  const auto is = [](Type type) { return [type](Call c) { return c.self.is(type); }; };
  return {
      {"boolean", is(Type::kBool)},
      {"defined", [](Call c) { return !c.self.is(Type::kUndefined); }},
      {"eq", is_equal, {""}},
      {"equalto", is_equal, {""}},
      {"false", [](Call c) { return c.self.is(Type::kBool) && !c.self.truthy(); }},
      {"in", [](Call c) { return contains(c.args[0], c.self); }, {""}},
      {"iterable", has_items},
      {"mapping", is(Type::kDict)},
      {"none", is(Type::kNone)},
      {"number", [](Call c) { return c.self.is_number(); }},
      {"sequence", has_items},
      {"string", [](Call c) { return c.self.is_text(); }},
      {"true", [](Call c) { return c.self.is(Type::kBool) && c.self.truthy(); }},
      {"undefined", is(Type::kUndefined)},
  };
}

std::vector<Builtin> make_methods() {
  return {
      {"endswith", [](Call c) { return c.self.text().ends_with(text_of(c.args[0])); }, {""}},
      {"get", get_member, {"", ""}},
      {"items", pairs},
      {"lstrip", [](Call c) { return strip_text(c, true, false); }, {""}},
      {"replace", replace, {"", ""}},
      {"rstrip", [](Call c) { return strip_text(c, false, true); }, {""}},
      {"split", split, {"sep", "maxsplit"}},
      {"startswith", [](Call c) { return c.self.text().starts_with(text_of(c.args[0])); }, {""}},
      {"strip", [](Call c) { return strip_text(c, true, true); }, {""}},
  };
}

std::vector<Builtin> make_functions() {
  return {
      // The parser reads its call; the name is defined.
      {"namespace", nullptr},
      {"raise_exception",
       [](Call c) -> Value {
         throw TemplateError{
             fmt::format("the chat template refuses the messages: {}", c.args[0].str()),
             "it calls raise_exception"};
       },
       {"message"}},
      // A prompt that depends on the day would break repeatability.
      {"strftime_now",
       [](Call) -> Value { throw unsupported("strftime_now (the current date)"); },
       {"format"}},
  };
}

}  // namespace

const Builtin* find_builtin(Table table, std::string_view name) {
  static const std::vector<Builtin> tables[] = {make_filters(), make_tests(), make_methods(),
                                                make_functions()};
  for (const Builtin& row : tables[static_cast<size_t>(table)]) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace rematch::jinja
