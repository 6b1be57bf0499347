#pragma once
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/text/jinja/value.h"

namespace rematch::jinja {

class Run;

/// A statement or an expression that was read; a statement gives no value.
struct Step {
  int line;
  std::function<Value(Run&)> apply;
};

/// The steps of a template refer to each other; all are owned here, so that none is destroyed
/// recursively. nullptr is an absent step.
using Code = const Step*;
using Program = std::deque<Step>;

struct Macro {
  std::string name;
  Strings parameters;
  /// One for each parameter, nullptr without a default.
  std::vector<Code> defaults;
  Code body = nullptr;
};

/// One rendering of a template, within a budget of operations and bytes.
class Run {
 public:
  /// Text of the program.
  /// @param variables  a dict: the names that the template sees
  /// @throws TemplateError
  std::string render(Code program, const Value& variables);

  /// Value of a step, charged by its weight; an absent one gives an absent value.
  /// @throws TemplateError when the budget is exhausted
  Value operator()(Code code);
  /// Text that a step writes.
  Value capture(Code code);
  Value call(const Macro& macro, const std::vector<Code>& arguments);
  void write(const std::string& text);

  Value look_up(const std::string& name) const;
  /// Binds one name, or several to the items of the value, in the innermost scope.
  void bind(const Strings& names, const Value& value);

  /// Names that are visible until it ends, on top of those of `parent`.
  struct Scope {
    explicit Scope(Run& outer) : run(outer), before(run.scope_), parent(before) {
      run.scope_ = this;
    }
    ~Scope() { run.scope_ = before; }
    Run& run;
    Scope* before;
    Scope* parent;
    std::map<std::string, Value> names;
  };

  /// Line of the step that runs.
  int line = 1;

 private:
  size_t num_steps_ = 0;
  int depth_ = 0;
  Scope* scope_ = nullptr;
  Scope* root_ = nullptr;
  std::string* out_ = nullptr;
};

/// Bytes of one text, and of the output.
constexpr size_t kMaxTextBytes = 16 << 20;

// Operations on values as in Python, which cost what their operands
// and results weigh. All throw TemplateErrors.

/// Items of a list, keys of a dict, nothing of an undefined value.
List items_of(const Value& value);
/// value.name
Value attribute_of(const Value& value, const std::string& name);
/// value[index]
Value item_of(const Value& value, const Value& index);
/// value[begin:end], a list; absent ends are the ends of the value.
Value slice_of(const Value& value, const Value& begin, const Value& end);
/// value[::-1], a list
Value reverse(const Value& value);
/// Finds `part` in `text`; npos if it is absent.
size_t find_text(const std::string& text, const std::string& part, size_t from);
bool contains(const Value& whole, const Value& part);
/// left op right
Value binary(const std::string& op, const Value& left, const Value& right);

/// A filter, test, method or function at work.
struct Call {
  /// The value before | or is, or the object of a method.
  const Value& self;
  /// One for each parameter, absent ones included.
  const std::vector<Value>& args;
};

/// A row of the tables of filters, tests, methods and functions. A parameter without a name is
/// positional.
struct Builtin {
  std::string name;
  std::function<Value(Call)> apply;
  Strings parameters = {};
};

enum class Table { kFilters, kTests, kMethods, kFunctions };

/// The row of that name; nullptr outside the subset.
const Builtin* find_builtin(Table table, std::string_view name);

/// An integer, or the fallback for an absent value and None.
int64_t integer_of(const Value& value, int64_t fallback);

}  // namespace rematch::jinja
