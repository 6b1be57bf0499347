#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"

namespace rematch::jinja {

/// The limits at which a hostile template is stopped.
struct Limits {
  int64_t steps = 20'000'000;    ///< operations; long texts count by their length
  size_t text_bytes = 16 << 20;  ///< of one value, and of the output
  int macro_depth = 50;          ///< calls inside calls
};

/// Arguments of a call, filter or test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// Walks the tree of a template. One object renders once.
class Interpreter {
 public:
  Interpreter(const Body& body, const std::string& where, const Limits& limits)
      : body_(body), where_(where), limits_(limits) {}

  /// Renders the template with these variables. @throws UserError (data) with path:line
  std::string render(const Dict& variables);

  // What the built-in filters, tests and functions need.

  /// Spends `count` operations. @throws TemplateError when the budget is exhausted
  void spend(size_t count);
  /// Python's str() of a value, charged to the budget.
  std::string text_of(const Value& value);
  /// A text value, checked against the limits.
  Value text_value(std::string text);
  /// Applies a filter by name. @throws TemplateError
  Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
  /// Applies a test by name. @throws TemplateError
  bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
  /// Elements of an iteration over a value: items of a list, keys of a dict, characters of a text.
  List items_of(const Value& value);
  /// value.name as a template reads it (attribute, else item).
  Value attribute(const Value& value, const std::string& name);

 private:
  struct Scope {
    std::map<std::string, Value> names;
    Scope* parent = nullptr;
  };
  enum class Flow { kNormal, kBreak, kContinue };

  Flow run(const Body& body, Scope& scope);
  Flow run_node(const Node& node, Scope& scope);
  Flow run_for(const Node& node, Scope& scope);
  void bind(const std::vector<std::string>& targets, const Value& value, Scope& scope);
  void assign(const Node& node, Value value, Scope& scope);
  void write(const std::string& text);
  std::string captured(const Body& body, Scope& scope);

  Value evaluate(const Expr& expr, Scope& scope);
  Value evaluate_node(const Expr& expr, Scope& scope);
  Value look_up(const std::string& name, const Scope& scope) const;
  Value item(const Value& value, const Value& index);
  Value slice(const Expr& expr, Scope& scope);
  Value list_of(const Expr& expr, Scope& scope);
  Value dict_of(const Expr& expr, Scope& scope);
  Value concatenation(const Expr& expr, Scope& scope);
  Value signed_number(const Value& value, bool negate) const;
  Value binary(const std::string& op, const Value& left, const Value& right);
  bool compare(const std::string& op, const Value& left, const Value& right);
  Value compare_chain(const Expr& expr, Scope& scope);
  Value call(const Expr& expr, Scope& scope);
  Value call_macro(const MacroNode& macro, const Arguments& arguments);
  Arguments evaluate_arguments(const Expr& expr, Scope& scope);

  const Body& body_;
  const std::string& where_;
  Limits limits_;
  int64_t steps_ = 0;
  int macro_depth_ = 0;
  int line_ = 1;
  Scope root_;
  std::string* out_ = nullptr;
};

/// Binds arguments to parameter names; absent ones stay empty. @throws TemplateError for too many
/// or unknown ones
std::vector<std::optional<Value>> bind_arguments(const std::string& callee,
                                                 const Arguments& arguments,
                                                 const std::vector<std::string>& parameters);

/// True for a bound argument that is there and not None.
inline bool is_given(const std::optional<Value>& argument) {
  return argument.has_value() && !argument->is_none();
}
/// True for a bound argument that is there and true.
inline bool is_true(const std::optional<Value>& argument) {
  return argument.has_value() && argument->truthy();
}

/// An integer argument. @throws TemplateError
int64_t integer_argument(const std::string& callee, const Value& value);

/// Calls a method of a string or dict, as in Python. @throws TemplateError, naming methods outside
/// the subset
Value call_method(Interpreter& interpreter, const Value& object, const std::string& name,
                  const Arguments& arguments);

/// True for names that are Python methods of such a value, which attribute access finds before
/// items.
bool is_method(const Value& object, const std::string& name);

/// Calls range, namespace, dict, raise_exception … @throws TemplateError
Value call_function(Interpreter& interpreter, const std::string& name, const Arguments& arguments);
bool is_function_name(const std::string& name);

/// -1, 0, 1 for numbers or texts. @throws TemplateError when Python has no order for them
int order(const Value& left, const Value& right);

/// `needle in haystack`.
bool contains(Interpreter& interpreter, const Value& haystack, const Value& needle);

}  // namespace rematch::jinja
