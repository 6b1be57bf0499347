#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"

namespace rematch::jinja {
namespace {

constexpr std::string_view kDictMethods[] = {"items",      "keys",   "values",  "get",
                                             "copy",       "clear",  "pop",     "popitem",
                                             "setdefault", "update", "fromkeys"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kTextMethods[] = {
    "capitalize", "casefold",   "center",       "count",        "encode",  "endswith",
    "expandtabs", "find",       "format",       "format_map",   "index",   "isalnum",
    "isalpha",    "isascii",    "isdecimal",    "isdigit",      "islower", "isnumeric",
    "isspace",    "istitle",    "isupper",      "join",         "ljust",   "lower",
    "lstrip",     "partition",  "removeprefix", "removesuffix", "replace", "rfind",
    "rindex",     "rjust",      "rpartition",   "rsplit",       "rstrip",  "split",
    "splitlines", "startswith", "strip",        "swapcase",     "title",   "translate",
    "upper",      "zfill",      "isidentifier", "isprintable"};

template <size_t N>
bool holds(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const std::string& text_argument(const std::string& method, const Value& value) {
  if (!value.is_string()) {
    throw TemplateError{fmt::format("{}() of the chat template needs a string", method),
                        fmt::format("{}: {}", value.type_name(), value.repr())};
  }
  return value.text();
}

// startswith and endswith take one string or several.
Value affix(const std::string& text, const std::string& name, const Arguments& arguments) {
  const auto bound = bind_arguments(name, arguments, {"affix"});
  throw_if_missing(name, bound[0], "the text to look for");
  const List choices = bound[0]->is_tuple() ? bound[0]->list() : List{*bound[0]};
  return std::any_of(choices.begin(), choices.end(), [&](const Value& choice) {
    const std::string& part = text_argument(name, choice);
    return name == "startswith" ? text.starts_with(part) : text.ends_with(part);
  });
}

Value stripped(Interpreter& interpreter, const std::string& text, const std::string& name,
               const Arguments& arguments) {
  const auto bound = bind_arguments(name, arguments, {"chars"});
  const bool has_chars = is_given(bound[0]);
  const auto chars = has_chars ? std::optional(text_argument(name, *bound[0])) : std::nullopt;
  return interpreter.text_value(
      strip_text(interpreter, text, chars, name != "rstrip", name != "lstrip"));
}

// Splits at whitespace, from the left or the right; at most `limit` cuts when it is not negative.
std::vector<std::string> split_words(std::string_view text, int64_t limit, bool from_right) {
  const std::vector<std::string> all = characters(text);
  std::vector<bool> space(all.size());
  for (size_t i = 0; i < all.size(); ++i) space[i] = python_strip(all[i]).empty();
  const auto size = static_cast<int64_t>(all.size());
  const int64_t step = from_right ? -1 : 1;
  std::vector<std::string> words;
  int64_t at = from_right ? size - 1 : 0;
  const auto inside = [&](int64_t i) { return i >= 0 && i < size; };
  while (true) {
    while (inside(at) && space[static_cast<size_t>(at)]) at += step;
    if (!inside(at)) break;
    int64_t stop = at;
    if (limit-- == 0) {
      stop = from_right ? -1 : size;  // the rest stays whole
    } else {
      while (inside(stop) && !space[static_cast<size_t>(stop)]) stop += step;
    }
    std::string word;
    const int64_t low = from_right ? stop + 1 : at, high = from_right ? at + 1 : stop;
    for (int64_t i = low; i < high; ++i) word += all[static_cast<size_t>(i)];
    words.push_back(std::move(word));
    at = stop;
    if (limit < -1) limit = -1;
    if (!inside(at) || (from_right ? stop == -1 : stop == size)) break;
  }
  if (from_right) std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string> split_at(const std::string& text, const std::string& separator,
                                  int64_t limit, bool from_right) {
  std::vector<std::string> parts;
  if (!from_right) {
    size_t done = 0;
    for (size_t at = text.find(separator); at != std::string::npos && limit != 0;
         at = text.find(separator, done), --limit) {
      parts.push_back(text.substr(done, at - done));
      done = at + separator.size();
    }
    parts.push_back(text.substr(done));
    return parts;
  }
  size_t end = text.size();
  while (limit != 0 && end >= separator.size()) {
    const size_t at = text.rfind(separator, end - separator.size());
    if (at == std::string::npos) break;
    parts.push_back(text.substr(at + separator.size(), end - at - separator.size()));
    end = at;
    --limit;
  }
  parts.push_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split_method(Interpreter& interpreter, const std::string& text, const std::string& name,
                   const Arguments& arguments) {
  const auto bound = bind_arguments(name, arguments, {"sep", "maxsplit"});
  const int64_t limit =
      bound[1].has_value() ? std::max<int64_t>(-1, integer_argument(name, *bound[1])) : -1;
  const bool from_right = name == "rsplit";
  interpreter.spend(text.size() + 1);
  std::vector<std::string> parts;
  if (!is_given(bound[0])) {
    parts = split_words(text, limit, from_right);
  } else {
    const std::string& separator = text_argument(name, *bound[0]);
    if (separator.empty())
      throw TemplateError{"the chat template splits at an empty string", "empty separator"};
    parts = split_at(text, separator, limit, from_right);
  }
  List list;
  for (std::string& part : parts) list.push_back(std::move(part));
  return list;
}

Value split_lines(Interpreter& interpreter, const std::string& text, const Arguments& arguments) {
  const auto bound = bind_arguments("splitlines", arguments, {"keepends"});
  const bool keep = is_true(bound[0]);
  interpreter.spend(text.size() + 1);
  List lines;
  std::string line;
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    const char32_t c = next_code_point(text, offset);
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (ends && c == '\r' && offset < text.size() && text[offset] == '\n') ++offset;
    if (!ends || keep) line += text.substr(begin, offset - begin);
    if (!ends) continue;
    lines.push_back(std::move(line));
    line.clear();
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

// Positions count characters.
Value find_method(Interpreter& interpreter, const std::string& text, const std::string& name,
                  const Arguments& arguments) {
  const auto bound = bind_arguments(name, arguments, {"sub"});
  throw_if_missing(name, bound[0], "the text to look for");
  const std::string& part = text_argument(name, *bound[0]);
  interpreter.spend(text.size() / 8 + 1);
  if (name == "count") {
    if (part.empty()) return static_cast<int64_t>(characters(text).size() + 1);
    return static_cast<int64_t>(split_at(text, part, -1, false).size() - 1);
  }
  const size_t at = name == "find" ? text.find(part) : text.rfind(part);
  return at == std::string::npos
             ? int64_t{-1}
             : static_cast<int64_t>(characters(std::string_view(text).substr(0, at)).size());
}

Value replace_method(Interpreter& interpreter, const std::string& text,
                     const Arguments& arguments) {
  const auto bound = bind_arguments("replace", arguments, {"old", "new", "count"});
  throw_if_missing("replace", bound[0], "old");
  throw_if_missing("replace", bound[1], "new");
  const int64_t count = bound[2].has_value() ? integer_argument("replace", *bound[2]) : -1;
  return interpreter.text_value(replace_text(interpreter, text, text_argument("replace", *bound[0]),
                                             text_argument("replace", *bound[1]), count));
}

Value join_method(Interpreter& interpreter, const std::string& text, const Arguments& arguments) {
  const auto bound = bind_arguments("join", arguments, {"items"});
  throw_if_missing("join", bound[0], "the items");
  for (const Value& item : interpreter.items_of(*bound[0])) text_argument("join", item);
  return interpreter.apply_filter("join", *bound[0], {{Value(text)}, {}});
}

Value text_method(Interpreter& interpreter, const std::string& text, const std::string& name,
                  const Arguments& arguments) {
  if (name == "startswith" || name == "endswith") return affix(text, name, arguments);
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return stripped(interpreter, text, name, arguments);
  if (name == "split" || name == "rsplit") return split_method(interpreter, text, name, arguments);
  if (name == "splitlines") return split_lines(interpreter, text, arguments);
  if (name == "find" || name == "rfind" || name == "count")
    return find_method(interpreter, text, name, arguments);
  if (name == "replace") return replace_method(interpreter, text, arguments);
  if (name == "join") return join_method(interpreter, text, arguments);
  if (name == "upper" || name == "lower" || name == "capitalize" || name == "title") {
    bind_arguments(name, arguments, {});
    return interpreter.text_value(change_case(text, name));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const auto bound = bind_arguments(name, arguments, {"affix"});
    throw_if_missing(name, bound[0], "the text to remove");
    const std::string& part = text_argument(name, *bound[0]);
    if (name == "removeprefix")
      return interpreter.text_value(text.starts_with(part) ? text.substr(part.size()) : text);
    return interpreter.text_value(text.ends_with(part) ? text.substr(0, text.size() - part.size())
                                                       : text);
  }
  throw not_implemented(fmt::format("the method {} of str", name));
}

Value dict_method(Interpreter& interpreter, const Value& object, const std::string& name,
                  const Arguments& arguments) {
  interpreter.spend(object.dict().size() + 1);
  if (name == "get") {
    const auto bound = bind_arguments("get", arguments, {"key", "default"});
    throw_if_missing("get", bound[0], "the key");
    const Value* found = bound[0]->is_string() ? object.find(bound[0]->text()) : nullptr;
    return found != nullptr ? *found : bound[1].value_or(Value(None{}));
  }
  if (name != "items" && name != "keys" && name != "values")
    throw not_implemented(fmt::format("the method {} of dict", name));
  bind_arguments(name, arguments, {});
  List list;
  for (const auto& [key, value] : object.dict()) {
    if (name == "items") {
      list.push_back(Value::tuple({Value(key), value}));
    } else {
      list.push_back(name == "keys" ? Value(key) : value);
    }
  }
  return list;
}

Value range_function(Interpreter& interpreter, const Arguments& arguments) {
  const auto bound = bind_arguments("range", arguments, {"start", "stop", "step"});
  throw_if_missing("range", bound[0], "the end");
  const int64_t first = integer_argument("range", *bound[0]);
  const int64_t start = bound[1].has_value() ? first : 0;
  const int64_t stop = bound[1].has_value() ? integer_argument("range", *bound[1]) : first;
  const int64_t step = bound[2].has_value() ? integer_argument("range", *bound[2]) : 1;
  if (step == 0) throw TemplateError{"the chat template calls range with step 0", "range(…, 0)"};
  constexpr size_t kMaxRange = 100'000;  // Jinja2's sandbox has the same bound
  List list;
  for (int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (list.size() >= kMaxRange) {
      throw TemplateError{"the chat template calls range with too many numbers",
                          fmt::format("more than {}", kMaxRange)};
    }
    list.push_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  interpreter.spend(list.size() + 1);
  return list;
}

}  // namespace

bool is_method(const Value& object, const std::string& name) {
  if (object.is_dict()) return holds(kDictMethods, name);
  if (object.is_list()) return holds(kListMethods, name);
  return object.is_string() && holds(kTextMethods, name);
}

Value call_method(Interpreter& interpreter, const Value& object, const std::string& name,
                  const Arguments& arguments) {
  if (object.is_string() && is_method(object, name))
    return text_method(interpreter, object.text(), name, arguments);
  if (object.is_dict() && is_method(object, name))
    return dict_method(interpreter, object, name, arguments);
  if (object.is_loop() && name == "cycle") {
    if (arguments.positional.empty()) {
      throw TemplateError{"the chat template calls loop.cycle without values",
                          "no items for cycling given"};
    }
    return arguments.positional[object.loop().index0 % arguments.positional.size()];
  }
  if (object.is_loop() || is_method(object, name))
    throw not_implemented(fmt::format("the method {} of {}", name, object.type_name()));
  throw TemplateError{fmt::format("the chat template calls {}() of a {}, which has no such method",
                                  name, object.type_name()),
                      object.is_function() ? "" : object.repr().substr(0, 80)};
}

bool is_function_name(const std::string& name) {
  return name == "range" || name == "namespace" || name == "dict" || name == "raise_exception" ||
         name == "strftime_now";
}

Value call_function(Interpreter& interpreter, const std::string& name, const Arguments& arguments) {
  if (name == "range") return range_function(interpreter, arguments);
  if (name == "raise_exception") {
    const auto bound = bind_arguments(name, arguments, {"message"});
    throw TemplateError{fmt::format("the chat template refuses the messages: {}",
                                    bound[0].has_value() ? interpreter.text_of(*bound[0]) : ""),
                        "it calls raise_exception"};
  }
  // A prompt that depends on the day would break repeatability.
  if (name == "strftime_now") throw not_implemented("strftime_now (the current date)");
  if (arguments.positional.size() > 1 ||
      (arguments.positional.size() == 1 && !arguments.positional[0].is_dict())) {
    throw not_implemented(fmt::format("{} with these arguments", name));
  }
  Dict members = arguments.positional.empty() ? Dict{} : arguments.positional[0].dict();
  for (const auto& [key, value] : arguments.keywords) put(members, key, value);
  if (name == "dict") return members;
  const Value checked(members);  // the same rules for the values inside
  auto space = std::make_shared<Namespace>();
  space->members = checked.dict();
  return space;
}

}  // namespace rematch::jinja
