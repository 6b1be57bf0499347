#include "model/text/jinja/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rematch::jinja {
namespace {

// Levels of lists and dicts, and values inside a value.
constexpr uint16_t kMaxDepth = 600;
constexpr uint32_t kMaxWeight = 4'000'000;

}  // namespace

TemplateError unsupported(const std::string& construct, int line) {
  return {fmt::format("the chat template uses {}, which is not implemented", construct), construct,
          line};
}

TemplateError over_limit(const std::string& unit, size_t limit) {
  return {fmt::format("the chat template needs too many {}", unit),
          fmt::format("more than {}", limit)};
}

TemplateError wrong_type(const std::string& use, const Value& value) {
  if (value.is(Type::kUndefined) && !value.is_absent())
    return {fmt::format("'{}' is undefined", value.text()), "the chat template " + use + " it"};
  return {fmt::format("the chat template {} a {}", use, value.type_name()), value.type_name()};
}

Value* find(Dict& members, std::string_view key) {
  for (auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

void put(Dict& members, const std::string& key, Value value) {
  if (find(members, key) == nullptr) members.emplace_back(key, Value());
  *find(members, key) = std::move(value);
}

Value::Value(List items) : type_(Type::kList), depth_(1) {
  for (const Value& item : items) nest(item);
  data_ = std::make_shared<List>(std::move(items));
}

Value::Value(Dict members, Type type) : type_(type), depth_(1) {
  for (const auto& member : members) nest(member.second);
  data_ = std::make_shared<Dict>(std::move(members));
}

void Value::nest(const Value& child) {
  if (child.type_ >= Type::kNamespace)
    throw unsupported(fmt::format("a {} inside another value", child.type_name()));
  depth_ = std::max<uint16_t>(depth_, child.depth_ + 1);
  weight_ += child.weight_;
  if (depth_ > kMaxDepth) throw over_limit("levels in a value", kMaxDepth);
  if (weight_ > kMaxWeight) throw over_limit("items in a value", kMaxWeight);
}

Value Value::none() {
  Value value;
  value.type_ = Type::kNone;
  return value;
}

Value Value::from_json(const Json& json) {
  if (json.is_null()) return none();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw unsupported("an integer beyond 64 bits");
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  List list;
  Dict dict;
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) list.push_back(from_json(value));
    if (json.is_object()) dict.emplace_back(key, from_json(value));
  }
  return json.is_array() ? Value(std::move(list)) : Value(std::move(dict));
}

Json Value::to_json() const {
  if (is(Type::kNone)) return nullptr;
  if (is(Type::kBool)) return truthy();
  if (is(Type::kInt)) return number_;
  if (is(Type::kFloat)) return std::bit_cast<double>(number_);
  if (is(Type::kText)) return text();
  if (is(Type::kList)) {
    Json::array_t items;
    for (const Value& item : list()) items.push_back(item.to_json());
    return items;
  }
  if (!is(Type::kDict)) throw wrong_type("writes JSON of", *this);
  // emplace() would search all keys each time.
  Json::object_t object;
  for (const auto& [key, value] : members()) object.emplace_back(key, value.to_json());
  return object;
}

bool Value::truthy() const {
  if (is_number()) return real() != 0;
  if (is_text()) return !text().empty();
  if (is(Type::kList)) return !list().empty();
  if (is(Type::kDict)) return !members().empty();
  return type_ >= Type::kNamespace;
}

bool Value::equals(const Value& other) const {
  if (is_number() && other.is_number()) return real() == other.real();
  if (is_text() && other.is_text()) return text() == other.text();
  if (type_ != other.type_) return false;
  if (is(Type::kList) || is(Type::kDict))
    throw unsupported(fmt::format("a comparison of a {} with another", type_name()));
  return type_ < Type::kNamespace || data_ == other.data_;
}

std::string Value::str() const {
  if (is(Type::kUndefined)) return "";
  if (is(Type::kNone)) return "None";
  if (is(Type::kBool)) return truthy() ? "True" : "False";
  if (is_text()) return text();
  if (is_number()) return python_json(to_json());
  throw unsupported(fmt::format("a {} as text", type_name()));
}

std::string Value::type_name() const {
  static constexpr const char* kNames[] = {"missing value", "None",      "bool",     "int",
                                           "float",         "str",       "safe str", "list",
                                           "dict",          "namespace", "loop",     "macro"};
  return kNames[static_cast<size_t>(type_)];
}

}  // namespace rematch::jinja
