#include "model/text/jinja/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace rematch::jinja {
namespace {

// Attributes that Python finds before the keys of a dict.
constexpr std::string_view kDictMethods =
    " clear copy fromkeys get items keys pop popitem setdefault update values ";

Value compare_order(const std::string& op, long double a, long double b) {
  return op == "<" ? a < b : op == "<=" ? a <= b : op == ">" ? a > b : a >= b;
}

Value arithmetic(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == "%") {
    if (b == 0) throw TemplateError{"the chat template divides by zero", fmt::format("{} % 0", a)};
    // Python gives the remainder the sign of the divisor.
    result = b == -1 ? 0 : a % b;
    return result != 0 && (result < 0) != (b < 0) ? result + b : result;
  }
  if (op == "+" ? __builtin_add_overflow(a, b, &result) : __builtin_sub_overflow(a, b, &result))
    throw unsupported("an integer beyond 64 bits");
  return result;
}

const List& list_of(const Value& value) {
  if (!value.is(Type::kList)) throw wrong_type("takes an item of", value);
  return value.list();
}

}  // namespace

// Linear, unlike std::string::find.
size_t find_text(const std::string& text, const std::string& part, size_t from) {
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

List items_of(const Value& value) {
  if (value.is(Type::kUndefined)) return {};
  if (value.is(Type::kList)) return value.list();
  if (!value.is(Type::kDict)) throw wrong_type("iterates over", value);
  List keys;
  for (const auto& member : value.members()) keys.push_back(member.first);
  return keys;
}

Value attribute_of(const Value& value, const std::string& name) {
  const bool is_dict = value.is(Type::kDict);
  if (is_dict && kDictMethods.find(fmt::format(" {} ", name)) != std::string_view::npos)
    throw unsupported(fmt::format("the method {} of dict without a call", name));
  if (is_dict || value.is(Type::kNamespace) || value.is(Type::kLoop)) {
    if (const Value* found = find(value.members(), name); found != nullptr) return *found;
    if (value.is(Type::kLoop)) throw unsupported("loop." + name);
  } else if (value.is(Type::kUndefined) || value.is(Type::kList) || value.is_text()) {
    throw wrong_type(fmt::format("reads the attribute {} of", name), value);
  }
  return Value::undefined(name);
}

Value item_of(const Value& value, const Value& index) {
  if (index.is_text()) {
    const Value* found = value.is(Type::kDict) ? find(value.members(), index.text()) : nullptr;
    return found != nullptr ? *found : attribute_of(value, index.text());
  }
  const List& all = list_of(value);
  if (!index.is_integer()) throw wrong_type("takes as an index", index);
  const int64_t at = index.integer(), size = std::ssize(all);
  if (at < -size || at >= size) return Value::undefined(index.str());
  return all[at < 0 ? at + size : at];
}

Value slice_of(const Value& value, const Value& begin, const Value& end) {
  const List& all = list_of(value);
  const auto size = std::ssize(all);
  const auto place = [&](const Value& index, int64_t fallback) {
    const int64_t at = integer_of(index, fallback);
    return std::clamp<int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
  };
  const int64_t first = place(begin, 0), last = std::max(first, place(end, size));
  return List(all.begin() + first, all.begin() + last);
}

Value reverse(const Value& value) {
  const List& all = list_of(value);
  return List(all.rbegin(), all.rend());
}

bool contains(const Value& whole, const Value& part) {
  if (whole.is_text() && part.is_text()) {
    return find_text(whole.text(), part.text(), 0) != std::string::npos;
  }
  if (whole.is(Type::kDict)) return part.is_text() && find(whole.members(), part.text()) != nullptr;
  if (whole.is(Type::kUndefined)) return false;
  if (!whole.is(Type::kList))
    throw wrong_type("looks for a value in", whole.is_text() ? part : whole);
  return std::any_of(whole.list().begin(), whole.list().end(),
                     [&](const Value& item) { return item.equals(part); });
}

Value binary(const std::string& op, const Value& left, const Value& right) {
  if (op == "==" || op == "!=") return left.equals(right) == (op == "==");
  if (op == "in" || op == "not in") return contains(right, left) == (op == "in");
  if (op == "~") return left.str() + right.str();
  const bool compares = op[0] == '<' || op[0] == '>';
  if (compares && left.is_number() && right.is_number())
    return compare_order(op, left.real(), right.real());
  if (!compares && left.is_integer() && right.is_integer())
    return arithmetic(op, left.integer(), right.integer());
  if (op == "+" && left.is(Type::kText) && right.is(Type::kText)) return left.text() + right.text();
  if (op != "+" || !left.is(Type::kList) || !right.is(Type::kList))
    throw wrong_type(fmt::format("applies {} to a {} and", op, left.type_name()),
                     left.is(Type::kUndefined) ? left : right);
  List both = left.list();
  both.insert(both.end(), right.list().begin(), right.list().end());
  return both;
}

int64_t integer_of(const Value& value, int64_t fallback) {
  if (value.is_absent() || value.is(Type::kNone)) return fallback;
  if (!value.is_integer()) throw wrong_type("takes as an integer", value);
  return value.integer();
}

}  // namespace rematch::jinja
