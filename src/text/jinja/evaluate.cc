#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "text/jinja/interpreter.h"

namespace rematch::jinja {
namespace {

[[noreturn]] void fail_operands(const std::string& op, const Value& left, const Value& right) {
  if (left.is_undefined())
    throw TemplateError{fmt::format("'{}' is undefined", left.undefined_name()),
                        fmt::format("left of {}", op)};
  if (right.is_undefined())
    throw TemplateError{fmt::format("'{}' is undefined", right.undefined_name()),
                        fmt::format("right of {}", op)};
  throw TemplateError{
      fmt::format("the chat template applies {} to values of unsupported types", op),
      fmt::format("{} {} {}", left.type_name(), op, right.type_name())};
}

Value integer_result(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (op == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (op == "*") overflow = __builtin_mul_overflow(a, b, &result);
  if (op == "//" || op == "%") {
    overflow = a == INT64_MIN && b == -1;
    if (!overflow) {
      // Python rounds towards minus infinity and gives the remainder the divisor's sign.
      const bool adjust = a % b != 0 && (a % b < 0) != (b < 0);
      result = op == "%" ? a % b + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
    }
  }
  if (overflow)
    throw TemplateError{"the chat template computes an integer that is too large",
                        fmt::format("{} {} {}", a, op, b)};
  return result;
}

Value number_result(const std::string& op, const Value& left, const Value& right) {
  if ((op == "/" || op == "//" || op == "%") && right.real() == 0.0) {
    throw TemplateError{"the chat template divides by zero",
                        fmt::format("{} {} {}", left.repr(), op, right.repr())};
  }
  if (op != "/" && !left.is_float() && !right.is_float())
    return integer_result(op, left.integer(), right.integer());
  const double a = left.real(), b = right.real();
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "/") return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0.0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == "%") return remainder;
  return std::round((a - remainder) / b);
}

// Start, stop and step of a slice as Python clamps them.
struct Range {
  int64_t start;
  int64_t stop;
  int64_t step;
};

Range slice_range(const Value* parts, int64_t size) {
  const auto part = [](const Value& value, int64_t fallback) {
    if (value.is_none() || value.is_undefined()) return fallback;
    return integer_argument("a slice", value);
  };
  Range range{0, 0, part(parts[2], 1)};
  if (range.step == 0) throw TemplateError{"the chat template has a slice with step 0", "[::0]"};
  const bool backwards = range.step < 0;
  const int64_t low = backwards ? -1 : 0, high = backwards ? size - 1 : size;
  const auto clamped = [&](int64_t index) {
    return std::clamp(index < 0 ? std::max<int64_t>(index, -size - 1) + size : index, low, high);
  };
  range.start = parts[0].is_none() ? (backwards ? high : low) : clamped(part(parts[0], 0));
  range.stop = parts[1].is_none() ? (backwards ? low : high) : clamped(part(parts[1], 0));
  return range;
}

// Walks a range over `items`; `add` receives each selected index. The step may be huge, so indices
// are counted, not added up.
template <typename Add>
void walk(const Range& range, const Add& add) {
  int64_t at = range.start;
  while (range.step > 0 ? at < range.stop : at > range.stop) {
    add(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, range.step, &at)) break;
  }
}

}  // namespace

int64_t integer_argument(const std::string& callee, const Value& value) {
  if (!value.is_int() && !value.is_bool()) {
    throw TemplateError{fmt::format("{} of the chat template needs an integer", callee),
                        fmt::format("{}: {}", value.type_name(), value.repr())};
  }
  return value.integer();
}

int order(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (!left.is_float() && !right.is_float())
      return left.integer() < right.integer() ? -1 : left.integer() > right.integer() ? 1 : 0;
    if (std::isnan(left.real()) || std::isnan(right.real()))
      throw not_implemented("the order of NaN");
    return left.real() < right.real() ? -1 : left.real() > right.real() ? 1 : 0;
  }
  if (!left.is_string() || !right.is_string()) fail_operands("<", left, right);
  const int result = left.text().compare(right.text());  // UTF-8 keeps the order of code points
  return result < 0 ? -1 : result > 0 ? 1 : 0;
}

bool contains(Interpreter& interpreter, const Value& haystack, const Value& needle) {
  if (haystack.is_string()) {
    if (!needle.is_string()) fail_operands("in", needle, haystack);
    interpreter.spend(haystack.text().size() / 64 + 1);
    return haystack.text().find(needle.text()) != std::string::npos;
  }
  if (haystack.is_undefined()) return false;
  if (haystack.is_dict()) {
    interpreter.spend(haystack.dict().size() / 16 + 1);
    return needle.is_string() && haystack.find(needle.text()) != nullptr;
  }
  if (!haystack.is_list()) fail_operands("in", needle, haystack);
  interpreter.spend(haystack.weight());
  return std::any_of(haystack.list().begin(), haystack.list().end(),
                     [&](const Value& item) { return item.equals(needle); });
}

List Interpreter::items_of(const Value& value) {
  List items;
  if (value.is_list()) {
    items = value.list();
  } else if (value.is_dict()) {
    for (const auto& member : value.dict()) items.push_back(member.first);
  } else if (value.is_string()) {
    spend(value.text().size());
    for (std::string& character : characters(value.text())) items.push_back(std::move(character));
  } else if (!value.is_undefined()) {
    throw TemplateError{fmt::format("the chat template iterates over a {}", value.type_name()),
                        "only lists, dicts and strings have items"};
  }
  spend(items.size());
  return items;
}

Value Interpreter::attribute(const Value& value, const std::string& name) {
  if (value.is_undefined()) {
    throw TemplateError{fmt::format("'{}' is undefined", value.undefined_name()),
                        fmt::format("its attribute {} is read", name)};
  }
  if (value.is_loop()) {
    const Loop& loop = value.loop();
    const auto size = static_cast<int64_t>(loop.items->size());
    const auto index0 = static_cast<int64_t>(loop.index0);
    if (name == "index0") return index0;
    if (name == "index") return index0 + 1;
    if (name == "first") return index0 == 0;
    if (name == "last") return index0 + 1 == size;
    if (name == "length") return size;
    if (name == "revindex") return size - index0;
    if (name == "revindex0") return size - index0 - 1;
    // only recursive loops go deeper
    if (name == "depth" || name == "depth0") return int64_t{name == "depth"};
    if (name == "previtem")
      return index0 > 0 ? (*loop.items)[loop.index0 - 1]
                        : Value(Undefined{"there is no previous item"});
    if (name == "nextitem")
      return index0 + 1 < size ? (*loop.items)[loop.index0 + 1]
                               : Value(Undefined{"there is no next item"});
    throw not_implemented(fmt::format("loop.{}", name));
  }
  if (is_method(value, name))
    throw not_implemented(
        fmt::format("the method {} of {} without a call", name, value.type_name()));
  if (value.is_dict() || value.is_namespace()) {
    spend((value.is_dict() ? value.dict() : value.space().members).size() / 16 + 1);
    if (const Value* found = value.find(name)) return *found;
  }
  return Undefined{name};
}

Value Interpreter::item(const Value& value, const Value& index) {
  if (value.is_undefined()) {
    throw TemplateError{fmt::format("'{}' is undefined", value.undefined_name()),
                        fmt::format("its item {} is read", index.repr())};
  }
  if (index.is_string()) {
    if (value.is_dict()) {
      spend(value.dict().size() / 16 + 1);
      if (const Value* found = value.find(index.text())) return *found;
    }
    return attribute(value, index.text());
  }
  const Undefined nothing{index.repr()};
  if (!index.is_int() && !index.is_bool()) return nothing;
  int64_t at = index.integer();
  if (value.is_list()) {
    const auto size = static_cast<int64_t>(value.list().size());
    if (at < 0) at += size;
    return at >= 0 && at < size ? value.list()[static_cast<size_t>(at)] : Value(nothing);
  }
  if (!value.is_string()) return nothing;
  spend(value.text().size() / 8 + 1);
  const std::vector<std::string> parts = characters(value.text());
  const auto size = static_cast<int64_t>(parts.size());
  if (at < 0) at += size;
  return at >= 0 && at < size ? text_value(parts[static_cast<size_t>(at)]) : Value(nothing);
}

Value Interpreter::slice(const Expr& expr, Scope& scope) {
  const Value value = evaluate(*expr.args[0], scope);
  Value parts[3] = {None{}, None{}, None{}};
  for (size_t i = 0; i < 3; ++i) {
    if (expr.args[i + 1] != nullptr) parts[i] = evaluate(*expr.args[i + 1], scope);
  }
  if (value.is_undefined())
    throw TemplateError{fmt::format("'{}' is undefined", value.undefined_name()),
                        "a slice of it is taken"};
  if (value.is_string()) {
    spend(value.text().size() / 8 + 1);
    const std::vector<std::string> all = characters(value.text());
    std::string text;
    walk(slice_range(parts, static_cast<int64_t>(all.size())), [&](size_t i) { text += all[i]; });
    return text_value(std::move(text));
  }
  if (!value.is_list()) return Undefined{"a slice"};
  List list;
  walk(slice_range(parts, static_cast<int64_t>(value.list().size())),
       [&](size_t i) { list.push_back(value.list()[i]); });
  spend(list.size() + 1);
  return value.is_tuple() ? Value::tuple(std::move(list)) : Value(std::move(list));
}

Value Interpreter::binary(const std::string& op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return number_result(op, left, right);
  if (op == "+" && left.is_string() && right.is_string())
    return text_value(left.text() + right.text());
  if (op == "+" && left.is_list() && right.is_list() && left.is_tuple() == right.is_tuple()) {
    List both = left.list();
    both.insert(both.end(), right.list().begin(), right.list().end());
    spend(both.size() + 1);
    return left.is_tuple() ? Value::tuple(std::move(both)) : Value(std::move(both));
  }
  if (op == "%" && left.is_string()) throw not_implemented("% as string formatting");
  const bool repeats =
      op == "*" && ((left.is_string() && right.is_int()) || (left.is_int() && right.is_string()));
  if (!repeats) fail_operands(op, left, right);
  const std::string& unit = left.is_string() ? left.text() : right.text();
  const int64_t count = std::max<int64_t>(0, left.is_string() ? right.integer() : left.integer());
  if (!unit.empty() && static_cast<uint64_t>(count) > limits_.text_bytes / unit.size()) {
    throw TemplateError{"the chat template creates a string that is too long",
                        fmt::format("{} bytes {} times", unit.size(), count)};
  }
  std::string text;
  for (int64_t i = 0; i < count && !unit.empty(); ++i) text += unit;
  return text_value(std::move(text));
}

bool Interpreter::compare(const std::string& op, const Value& left, const Value& right) {
  if (op == "in") return contains(*this, right, left);
  if (op == "not in") return !contains(*this, right, left);
  if (op == "==" || op == "!=") {
    spend(left.weight());
    return left.equals(right) == (op == "==");
  }
  const int result = order(left, right);
  return op == "<" ? result < 0 : op == "<=" ? result <= 0 : op == ">" ? result > 0 : result >= 0;
}

Value Interpreter::compare_chain(const Expr& expr, Scope& scope) {
  Value left = evaluate(*expr.args[0], scope);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = evaluate(*expr.args[i + 1], scope);
    if (!compare(expr.ops[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
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
    case ExprKind::kList: {
      List list;
      for (const ExprPtr& item : expr.args) list.push_back(evaluate(*item, scope));
      return expr.name.empty() ? Value(std::move(list)) : Value::tuple(std::move(list));
    }
    case ExprKind::kDict: {
      Dict dict;
      for (size_t i = 0; i < expr.args.size(); i += 2) {
        const Value key = arg(i);
        if (!key.is_string())
          throw not_implemented(fmt::format("a dict key that is a {}", key.type_name()));
        Value value = arg(i + 1);
        const auto same = std::find_if(dict.begin(), dict.end(), [&](const auto& member) {
          return member.first == key.text();
        });
        if (same != dict.end()) {
          same->second = std::move(value);
        } else {
          dict.emplace_back(key.text(), std::move(value));
        }
      }
      return dict;
    }
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
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      const Value value = arg(0);
      if (!value.is_number()) fail_operands(expr.kind == ExprKind::kPlus ? "+" : "-", value, value);
      if (expr.kind == ExprKind::kPlus) return value.is_bool() ? Value(value.integer()) : value;
      return value.is_float() ? Value(-value.real()) : integer_result("-", 0, value.integer());
    }
    case ExprKind::kAnd: {
      Value left = arg(0);
      return left.truthy() ? arg(1) : left;
    }
    case ExprKind::kOr: {
      Value left = arg(0);
      return left.truthy() ? left : arg(1);
    }
    case ExprKind::kBinary: {
      const Value left = arg(0);
      const Value right = arg(1);
      line_ = expr.line;
      return binary(expr.name, left, right);
    }
    case ExprKind::kCompare: return compare_chain(expr, scope);
    case ExprKind::kConcat: {
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
    case ExprKind::kCond:
      if (arg(1).truthy()) return arg(0);
      return expr.args[2] != nullptr ? arg(2) : Value(Undefined{"the inline if without else"});
  }
  return Undefined{""};
}

}  // namespace rematch::jinja
