#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"

namespace rematch::jinja {

class Value;
using List = std::vector<Value>;
/// Keys in insertion order; the language subset has string keys only.
using Dict = std::vector<std::pair<std::string, Value>>;

/// A missing variable, attribute or item: prints as nothing, is false, and fails in any other use.
struct Undefined {
  std::string name;
};
struct None {};

/// Result of `namespace(…)`: the only value a template can change. Never stored inside other
/// values, so no value holds itself.
struct Namespace {
  Dict members;
};

struct MacroNode;

/// State of a running `for`, behind the name `loop`.
struct Loop {
  std::shared_ptr<const List> items;
  size_t index0 = 0;
};

/// Function names of the language such as `range`, or a macro (then `macro` is set).
struct Function {
  std::string name;
  const MacroNode* macro = nullptr;
};

/// A Python value as a template sees it. Lists and dicts are immutable and shared; copying is
/// cheap.
class Value {
 public:
  Value() : data_(Undefined{}) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : weight_(value.size() / 64 + 1) {
    data_ = std::make_shared<const std::string>(std::move(value));
  }
  Value(const char*) = delete;
  /// @throws TemplateError when nested deeper than kMaxDepth or heavier than kMaxWeight, or when an
  /// item is a namespace, a loop or a function
  Value(List list);
  Value(Dict dict);
  /// A Python tuple: a list with other brackets, never equal to a list.
  static Value tuple(List items);
  Value(std::shared_ptr<Namespace> space) : data_(std::move(space)) {}
  Value(std::shared_ptr<const Loop> loop) : data_(std::move(loop)) {}
  Value(Function function) : data_(std::move(function)) {}

  /// Levels of lists and dicts inside each other.
  static constexpr int kMaxDepth = 600;
  /// Values inside a value, shared parts counted each time they appear: what walking over it costs.
  static constexpr size_t kMaxWeight = 4'000'000;

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  /// A Python int that is not a bool.
  bool is_int() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<Text>(data_); }
  bool is_list() const { return std::holds_alternative<ListPtr>(data_); }
  bool is_tuple() const { return is_tuple_; }
  bool is_dict() const { return std::holds_alternative<DictPtr>(data_); }
  bool is_namespace() const { return std::holds_alternative<std::shared_ptr<Namespace>>(data_); }
  bool is_loop() const { return std::holds_alternative<std::shared_ptr<const Loop>>(data_); }
  bool is_function() const { return std::holds_alternative<Function>(data_); }

  const std::string& undefined_name() const { return std::get<Undefined>(data_).name; }
  bool boolean() const { return std::get<bool>(data_); }
  /// bool or int as an integer.
  int64_t integer() const {
    return is_bool() ? static_cast<int64_t>(boolean()) : std::get<int64_t>(data_);
  }
  /// Any number as a double.
  double real() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const std::string& text() const { return *std::get<Text>(data_); }
  const List& list() const { return *std::get<ListPtr>(data_); }
  const Dict& dict() const { return *std::get<DictPtr>(data_); }
  Namespace& space() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  const Loop& loop() const { return *std::get<std::shared_ptr<const Loop>>(data_); }
  const Function& function() const { return std::get<Function>(data_); }

  /// Python's truth value.
  bool truthy() const;
  /// Python's str() of it; Undefined is empty.
  std::string str() const;
  /// Python's repr() of it.
  std::string repr() const;
  /// Python's type name, for errors.
  const char* type_name() const;
  /// Cost of walking over it: scalars 1, texts more by their length, lists and dicts the sum of
  /// their items.
  size_t weight() const { return weight_; }

  /// Python's ==.
  bool equals(const Value& other) const;
  /// The member of a dict, or nullptr. Cost: linear.
  const Value* find(std::string_view key) const;

  static Value from_json(const Json& json);
  /// @throws TemplateError for what json.dumps rejects
  Json to_json(bool sort_keys) const;

 private:
  using Text = std::shared_ptr<const std::string>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;
  void nest(const Value& child);
  std::variant<Undefined, None, bool, int64_t, double, Text, ListPtr, DictPtr,
               std::shared_ptr<Namespace>, std::shared_ptr<const Loop>, Function>
      data_;
  bool is_tuple_ = false;
  int depth_ = 0;
  size_t weight_ = 1;
};

/// A run-time error; the interpreter adds file and line and turns it into a UserError.
struct TemplateError {
  std::string error;  ///< one line
  std::string what;   ///< the values involved
};

/// Sets the member `key`, replacing the value that it has.
void put(Dict& dict, const std::string& key, Value value);

/// The error for the use of an undefined value. @param use  what is done with it
[[noreturn]] void fail_undefined(const Value& value, const std::string& use);

/// The error for a construct outside the subset.
TemplateError not_implemented(const std::string& construct);

/// Code points of valid UTF-8.
std::vector<std::string> characters(std::string_view utf8);

}  // namespace rematch::jinja
