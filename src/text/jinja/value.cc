#include "text/jinja/value.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace rematch::jinja {
namespace {

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

std::string string_repr(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    const char32_t c = next_code_point(text, offset);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, offset - begin);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else {
      out += c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<uint32_t>(c))
                         : fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out + quote;
}

std::string members_repr(const Dict& members) {
  std::string out = "{";
  for (size_t i = 0; i < members.size(); ++i) {
    out += fmt::format("{}{}: {}", i > 0 ? ", " : "", string_repr(members[i].first),
                       members[i].second.repr());
  }
  return out + "}";
}

// Python compares int with float exactly, so 2**53 + 1 is not 2.0**53.
bool numbers_equal(const Value& a, const Value& b) {
  if (!a.is_float() && !b.is_float()) return a.integer() == b.integer();
  return static_cast<long double>(a.is_float() ? a.real()
                                               : static_cast<long double>(a.integer())) ==
         static_cast<long double>(b.is_float() ? b.real() : static_cast<long double>(b.integer()));
}

}  // namespace

void put(Dict& dict, const std::string& key, Value value) {
  const auto same = std::find_if(dict.begin(), dict.end(),
                                 [&](const auto& member) { return member.first == key; });
  if (same != dict.end()) {
    same->second = std::move(value);
  } else {
    dict.emplace_back(key, std::move(value));
  }
}

void fail_undefined(const Value& value, const std::string& use) {
  throw TemplateError{fmt::format("'{}' is undefined", value.undefined_name()), use};
}

TemplateError not_implemented(const std::string& construct) {
  return {fmt::format("the chat template uses {}, which is not implemented", construct), construct};
}

std::vector<std::string> characters(std::string_view utf8) {
  std::vector<std::string> parts;
  for (size_t offset = 0; offset < utf8.size();) {
    const size_t begin = offset;
    next_code_point(utf8, offset);
    parts.emplace_back(utf8.substr(begin, offset - begin));
  }
  return parts;
}

void Value::nest(const Value& child) {
  if (child.is_namespace() || child.is_loop() || child.is_function()) {
    throw not_implemented(fmt::format("a {} inside a list or dict", child.type_name()));
  }
  depth_ = std::max(depth_, child.depth_ + 1);
  weight_ += child.weight_;
  if (weight_ > kMaxWeight)
    throw TemplateError{"a value of the chat template is too large",
                        fmt::format("more than {} items", kMaxWeight)};
  if (depth_ > kMaxDepth) {
    throw TemplateError{"a value of the chat template is nested too deeply",
                        fmt::format("more than {} levels", kMaxDepth)};
  }
}

Value::Value(List list) {
  depth_ = 1;
  for (const Value& item : list) nest(item);
  data_ = std::make_shared<const List>(std::move(list));
}

Value Value::tuple(List items) {
  Value value(std::move(items));
  value.is_tuple_ = true;
  return value;
}

Value::Value(Dict dict) {
  depth_ = 1;
  for (const auto& [key, item] : dict) nest(item);
  data_ = std::make_shared<const Dict>(std::move(dict));
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return is_float() ? real() != 0.0 : integer() != 0;
  if (is_string()) return !text().empty();
  if (is_list()) return !list().empty();
  if (is_dict()) return !dict().empty();
  return true;
}

std::string Value::str() const {
  if (is_undefined()) return "";
  return is_string() ? text() : repr();
}

std::string Value::repr() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "None";
  if (is_bool()) return boolean() ? "True" : "False";
  if (is_int()) return fmt::format("{}", integer());
  if (is_float()) {
    const std::string text = python_json(Json(real()));
    return text == "NaN" ? "nan" : text == "Infinity" ? "inf" : text == "-Infinity" ? "-inf" : text;
  }
  if (is_string()) return string_repr(text());
  if (is_dict()) return members_repr(dict());
  if (is_namespace()) return fmt::format("<Namespace {}>", members_repr(space().members));
  if (!is_list()) throw not_implemented(fmt::format("a {} as text", type_name()));
  std::string out = is_tuple_ ? "(" : "[";
  for (size_t i = 0; i < list().size(); ++i) out += (i > 0 ? ", " : "") + list()[i].repr();
  if (is_tuple_) return out + (list().size() == 1 ? ",)" : ")");
  return out + "]";
}

const char* Value::type_name() const {
  if (is_tuple_) return "tuple";
  static constexpr const char* kNames[] = {"Undefined", "NoneType", "bool",    "int",
                                           "float",     "str",      "list",    "dict",
                                           "namespace", "loop",     "function"};
  return kNames[data_.index()];
}

bool Value::equals(const Value& other) const {
  if (is_number() && other.is_number()) return numbers_equal(*this, other);
  if (data_.index() != other.data_.index()) return false;
  if (is_string()) return text() == other.text();
  if (is_list()) {
    return is_tuple_ == other.is_tuple_ && list().size() == other.list().size() &&
           std::equal(list().begin(), list().end(), other.list().begin(),
                      [](const Value& a, const Value& b) { return a.equals(b); });
  }
  if (is_dict()) {
    if (dict().size() != other.dict().size()) return false;
    return std::all_of(dict().begin(), dict().end(), [&](const auto& member) {
      const Value* found = other.find(member.first);
      return found != nullptr && found->equals(member.second);
    });
  }
  if (is_namespace()) return &space() == &other.space();
  if (is_loop()) return &loop() == &other.loop();
  if (is_function())
    return function().name == other.function().name && function().macro == other.function().macro;
  return true;  // None, Undefined
}

const Value* Value::find(std::string_view key) const {
  const Dict& members = is_namespace() ? space().members : dict();
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

Value Value::from_json(const Json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    throw TemplateError{"an integer of the messages is too large",
                        fmt::format("{}", json.get<uint64_t>())};
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List list;
    for (const Json& item : json) list.push_back(from_json(item));
    return list;
  }
  Dict dict;
  for (const auto& member : json.items())
    dict.emplace_back(member.key(), from_json(member.value()));
  return dict;
}

Json Value::to_json(bool sort_keys) const {
  if (is_none()) return nullptr;
  if (is_bool()) return boolean();
  if (is_int()) return integer();
  if (is_float()) return real();
  if (is_string()) return text();
  if (is_list()) {
    Json json = Json::array();
    for (const Value& item : list()) json.push_back(item.to_json(sort_keys));
    return json;
  }
  if (!is_dict()) {
    throw TemplateError{fmt::format("the chat template writes a {} as JSON", type_name()),
                        is_undefined() ? undefined_name() : str()};
  }
  Dict members = dict();
  if (sort_keys)
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  Json json = Json::object();
  for (const auto& [key, item] : members) {
    // push_back of the underlying vector: operator[] would search all keys each time.
    static_cast<std::vector<std::pair<const std::string, Json>>&>(json.get_ref<Json::object_t&>())
        .emplace_back(key, item.to_json(sort_keys));
  }
  return json;
}

}  // namespace rematch::jinja
