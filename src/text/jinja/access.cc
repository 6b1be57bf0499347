// The parts of a value: items, attributes and slices.
#include <fmt/core.h>

#include <algorithm>

#include "text/jinja/interpreter.h"

namespace rematch::jinja {
namespace {

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

Value loop_attribute(const Loop& loop, const std::string& name) {
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

}  // namespace

int64_t integer_argument(const std::string& callee, const Value& value) {
  if (!value.is_int() && !value.is_bool()) {
    throw TemplateError{fmt::format("{} of the chat template needs an integer", callee),
                        fmt::format("{}: {}", value.type_name(), value.repr())};
  }
  return value.integer();
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
  if (value.is_undefined()) fail_undefined(value, fmt::format("its attribute {} is read", name));
  if (value.is_loop()) return loop_attribute(value.loop(), name);
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
  if (value.is_undefined()) fail_undefined(value, fmt::format("its item {} is read", index.repr()));
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
  if (value.is_undefined()) fail_undefined(value, "a slice of it is taken");
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

}  // namespace rematch::jinja
