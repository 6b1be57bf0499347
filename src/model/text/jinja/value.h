#pragma once
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace rematch::jinja {

class Value;
struct Macro;
using List = std::vector<Value>;
/// Keys in insertion order; the subset has text keys only.
using Dict = std::vector<std::pair<std::string, Value>>;

/// Safe: text after the filter safe. The last three are never inside another value, so no value
/// contains itself.
enum class Type : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kText,
  kSafe,
  kList,
  kDict,
  kNamespace,
  kLoop,
  kMacro,
};

/// A Python value as a template sees it. Cheap to copy: texts, lists and dicts are shared and, but
/// for the members of a namespace, immutable.
class Value {
 public:
  /// An absent argument; an undefined value without a name.
  Value() = default;
  Value(bool value) : type_(Type::kBool), number_(value) {}
  Value(int64_t value) : type_(Type::kInt), number_(value) {}
  Value(double value) : type_(Type::kFloat), number_(std::bit_cast<int64_t>(value)) {}
  Value(const char*) = delete;
  Value(std::string text, Type type = Type::kText)
      : type_(type),
        weight_(static_cast<uint32_t>(text.size() / 64 + 1)),
        data_(std::make_shared<std::string>(std::move(text))) {}
  /// @throws TemplateError when nested too deeply or too heavy
  Value(List items);
  Value(Dict members, Type type = Type::kDict);
  explicit Value(std::shared_ptr<Macro> macro) : type_(Type::kMacro), data_(std::move(macro)) {}
  static Value none();
  static Value undefined(std::string name) { return {std::move(name), Type::kUndefined}; }
  static Value from_json(const Json& json);

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  /// True for an argument that is left out.
  bool is_absent() const { return data_ == nullptr && is(Type::kUndefined); }
  bool is_integer() const { return is(Type::kBool) || is(Type::kInt); }
  bool is_number() const { return is_integer() || is(Type::kFloat); }
  bool is_text() const { return is(Type::kText) || is(Type::kSafe); }

  /// bool or int.
  int64_t integer() const { return number_; }
  /// Any number, exactly.
  long double real() const {
    return is(Type::kFloat) ? std::bit_cast<double>(number_) : static_cast<long double>(number_);
  }
  /// A text, or the name of an undefined value.
  const std::string& text() const { return *static_cast<const std::string*>(data_.get()); }
  const List& list() const { return *static_cast<const List*>(data_.get()); }
  /// Members of a dict, namespace or loop.
  Dict& members() const { return *static_cast<Dict*>(data_.get()); }
  const Macro& macro() const { return *static_cast<const Macro*>(data_.get()); }

  bool truthy() const;
  /// @throws TemplateError for two lists and two dicts
  bool equals(const Value& other) const;
  /// Python's str(); nothing for an undefined value.
  /// @throws TemplateError for lists and dicts
  std::string str() const;
  /// @throws TemplateError for values without JSON
  Json to_json() const;
  std::string type_name() const;
  /// Levels of lists and dicts.
  size_t depth() const { return depth_; }
  /// Cost of reading all of it; shared parts count each time they appear.
  size_t weight() const { return weight_; }

 private:
  void nest(const Value& child);
  Type type_ = Type::kUndefined;
  uint16_t depth_ = 0;
  uint32_t weight_ = 1;
  int64_t number_ = 0;
  std::shared_ptr<void> data_;
};

/// An error of a template. `what` has the values involved; line 0 is the line that runs.
struct TemplateError {
  std::string error;
  std::string what;
  int line = 0;
};

/// The error for a construct outside the subset.
TemplateError unsupported(const std::string& construct, int line = 0);

/// The error for a template that needs too much.
/// @param unit  as in "levels"
TemplateError over_limit(const std::string& unit, size_t limit);

/// The error for a value of the wrong type.
/// @param use  a verb, as in "iterates over"
TemplateError wrong_type(const std::string& use, const Value& value);

/// The member of that name, or nullptr. Cost: linear.
Value* find(Dict& members, std::string_view key);
/// Sets a member, replacing the value that it has.
void put(Dict& members, const std::string& key, Value value);

}  // namespace rematch::jinja
