// Walks the tree of an expression.
#include <fmt/core.h>

#include "text/jinja/interpreter.h"

namespace rematch::jinja {

Value Interpreter::compare_chain(const Expr& expr, Scope& scope) {
  Value left = evaluate(*expr.args[0], scope);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = evaluate(*expr.args[i + 1], scope);
    if (!compare(expr.ops[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::list_of(const Expr& expr, Scope& scope) {
  List list;
  for (const ExprPtr& item : expr.args) list.push_back(evaluate(*item, scope));
  return expr.name.empty() ? Value(std::move(list)) : Value::tuple(std::move(list));
}

Value Interpreter::dict_of(const Expr& expr, Scope& scope) {
  Dict dict;
  for (size_t i = 0; i < expr.args.size(); i += 2) {
    const Value key = evaluate(*expr.args[i], scope);
    if (!key.is_string())
      throw not_implemented(fmt::format("a dict key that is a {}", key.type_name()));
    put(dict, key.text(), evaluate(*expr.args[i + 1], scope));
  }
  return dict;
}

Value Interpreter::concatenation(const Expr& expr, Scope& scope) {
  std::string text;
  for (const ExprPtr& part : expr.args) {
    text += text_of(evaluate(*part, scope));
    if (text.size() > limits_.text_bytes) {
      throw TemplateError{"the chat template creates a string that is too long",
                          fmt::format("more than {} bytes", limits_.text_bytes)};
    }
  }
  return text_value(std::move(text));
}

Value Interpreter::evaluate(const Expr& expr, Scope& scope) {
  spend(1);
  line_ = expr.line;
  return evaluate_node(expr, scope);
}

Value Interpreter::evaluate_node(const Expr& expr, Scope& scope) {
  const auto arg = [&](size_t i) { return evaluate(*expr.args[i], scope); };
  switch (expr.kind) {
    case ExprKind::kConst: return expr.constant;
    case ExprKind::kName: return look_up(expr.name, scope);
    case ExprKind::kList: return list_of(expr, scope);
    case ExprKind::kDict: return dict_of(expr, scope);
    case ExprKind::kAttr: return attribute(arg(0), expr.name);
    case ExprKind::kItem: {
      const Value value = arg(0);
      return item(value, arg(1));
    }
    case ExprKind::kSlice: return slice(expr, scope);
    case ExprKind::kCall: return call(expr, scope);
    case ExprKind::kFilter: {
      const Value value = arg(0);
      const Arguments arguments = evaluate_arguments(expr, scope);
      line_ = expr.line;
      return apply_filter(expr.name, value, arguments);
    }
    case ExprKind::kTest: {
      const Value value = arg(0);
      return apply_test(expr.name, value, evaluate_arguments(expr, scope));
    }
    case ExprKind::kNot: return !arg(0).truthy();
    case ExprKind::kNegate: return signed_number(arg(0), true);
    case ExprKind::kPlus: return signed_number(arg(0), false);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value left = arg(0);
      return left.truthy() == (expr.kind == ExprKind::kAnd) ? arg(1) : left;
    }
    case ExprKind::kBinary: {
      const Value left = arg(0);
      const Value right = arg(1);
      line_ = expr.line;
      return binary(expr.name, left, right);
    }
    case ExprKind::kCompare: return compare_chain(expr, scope);
    case ExprKind::kConcat: return concatenation(expr, scope);
    case ExprKind::kCond:
      if (arg(1).truthy()) return arg(0);
      return expr.args[2] != nullptr ? arg(2) : Value(Undefined{"the inline if without else"});
  }
  return Undefined{""};
}

}  // namespace rematch::jinja
