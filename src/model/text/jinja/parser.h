#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/jinja/cursor.h"
#include "model/text/jinja/run.h"

namespace rematch::jinja {

/// Arguments of a call with their keywords, "" for positional ones; members of a dict.
using Arguments = std::vector<std::pair<std::string, Code>>;

/// The argument of each parameter, nullptr for absent ones.
/// @param callee  its name in errors
/// @throws TemplateError for arguments that it does not have
std::vector<Code> bind_arguments(const Arguments& arguments, const Strings& parameters,
                                 const std::string& callee, int line);

/// True for words that cannot be names: those of operators, and no word.
bool is_reserved(std::string_view word);
/// The value of true, false and none, absent for other words.
Value named_constant(std::string_view word);

/// Reads a template into steps: statements in statements.cc, expressions in expressions.cc. Both
/// throw TemplateErrors with their line for wrong syntax and, by name, for constructs outside the
/// subset.
class Parser : Cursor {
 public:
  explicit Parser(std::string_view source) : Cursor(source) {}
  /// The step that writes the whole template.
  /// @param program  receives its parts
  Code parse(Program& program);

 private:
  /// @param begin  its line; 0 is the current one
  Code add(std::function<Value(Run&)> apply, int begin = 0);
  /// Counts recursion; the caller ends it with --depth_.
  void enter();
  /// A name that the template binds.
  std::string target();

  Code block(std::initializer_list<std::string_view> ends);
  Code statement();
  Code if_statement();
  Code for_statement();
  Code set_statement();
  Code macro_statement();

  Code expression();
  Code binary_expression(int lowest_level);
  Code unary();
  Code primary();
  Code named_expression();
  Code list_literal();
  Code dict_literal();
  Code postfix(Code value);
  Code attribute(Code value);
  Code subscript(Code value);
  Code call(const std::string& name);
  Code filters(Code value);
  Arguments arguments();
  Code application(Table table, const std::string& name, Code self);

  Program* program_ = nullptr;
  /// Name of the tag that ended the last block.
  std::string end_;
  int depth_ = 0;
  /// Around the current statement.
  int num_loops_and_macros_ = 0;
};

}  // namespace rematch::jinja
