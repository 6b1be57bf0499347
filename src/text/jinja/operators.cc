// What the operators of an expression do with values, as in Python.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"

namespace rematch::jinja {
namespace {

[[noreturn]] void fail_operands(const std::string& op, const Value& left, const Value& right) {
  if (left.is_undefined()) fail_undefined(left, fmt::format("left of {}", op));
  if (right.is_undefined()) fail_undefined(right, fmt::format("right of {}", op));
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

}  // namespace

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

Value Interpreter::signed_number(const Value& value, bool negate) const {
  if (!value.is_number()) fail_operands(negate ? "-" : "+", value, value);
  if (!negate) return value.is_bool() ? Value(value.integer()) : value;
  return value.is_float() ? Value(-value.real()) : integer_result("-", 0, value.integer());
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

}  // namespace rematch::jinja
