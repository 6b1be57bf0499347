#include "program/config/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "program/config/convert_files.h"

namespace rematch {
namespace {

/// Removes a plus sign, which from_chars does not accept.
std::string_view skip_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  return text;
}

/// Some YAML parsers read 017 as 15, others as 17.
bool looks_octal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// Parses a whole text as a number. @tparam Number  int64_t or double
template <class Number>
std::optional<Number> parse(std::string_view text) {
  if (looks_octal(text)) return std::nullopt;
  text = skip_plus(text);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // Underflow (1e-999) counts as out of range, like overflow.
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<bool> to_bool(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE" || text == "1") return true;
  if (text == "false" || text == "False" || text == "FALSE" || text == "0") return false;
  return std::nullopt;
}

std::string type_name(const KeySpec& spec) {
  switch (spec.type) {
    case KeyType::kString: return "text";
    case KeyType::kInteger: return "an integer";
    case KeyType::kNumber: return "a number";
    case KeyType::kBool: return "true or false";
    case KeyType::kSwitch: return "one of " + join(spec.choices, ", ");
    case KeyType::kStringList: return "a list of strings";
    case KeyType::kFiles: return "a path or a list of files";
    case KeyType::kAny: return "anything";
  }
  return "";
}

/// A usual value of a whole number without a default.
const char* example_of(const std::string& name) {
  if (name.ends_with("_pixels")) return "1048576";
  return name.find("_len") != std::string::npos ? "4096" : "8";
}

/// Advice for a value of the wrong type.
std::string type_advice(const KeySpec& spec, const Node& node) {
  const std::string name = spec.path.substr(spec.path.rfind('.') + 1);
  if (node.is_map())
    return fmt::format("`{}` has no keys below it; write `{}: VALUE`", spec.path, name);
  if ((spec.type == KeyType::kInteger || spec.type == KeyType::kNumber) &&
      looks_octal(node.scalar)) {
    return "remove the leading zeros: programs disagree on whether such a number is octal";
  }
  switch (spec.type) {
    case KeyType::kBool:
      return fmt::format("write `{}: true` or `{}: false`, without quotes", name, name);
    case KeyType::kSwitch: return fmt::format("write {}, without quotes", join(spec.choices, ", "));
    case KeyType::kInteger:
      return fmt::format("write decimal digits without quotes, e.g. `{}: {}`", name,
                         spec.fallback.empty() ? example_of(name) : spec.fallback);
    case KeyType::kNumber:
      return fmt::format("write a finite number without quotes, e.g. `{}: {}`", name,
                         spec.fallback.empty() ? "1e-4" : spec.fallback);
    default:
      return fmt::format("write {} for `{}`; quote text that YAML would split", type_name(spec),
                         name);
  }
}

Json report_wrong_type(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  problems.push_back({fmt::format("`{}` must be {}", spec.path, type_name(spec)),
                      node.origin.text(), fmt::format("it is {}", shorten(node)),
                      type_advice(spec, node)});
  return nullptr;
}

bool has_rule(const KeySpec& spec, const std::string& when) {
  return std::any_of(spec.rules.begin(), spec.rules.end(),
                     [&](const ValueRule& rule) { return rule.when == when; });
}

bool check_choice(const KeySpec& spec, const std::string& text, const Node& node,
                  std::vector<Problem>& problems) {
  const auto& choices = spec.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end())
    return true;
  if (has_rule(spec, "=" + text)) return false;  // a rule covers it
  const std::vector<std::string> near = near_names(text, choices);
  problems.push_back(
      {fmt::format("`{}` cannot be `{}`", spec.path, shorten(node)), node.origin.text(),
       fmt::format("legal values: {}", join(choices, ", ")),
       (spec.type == KeyType::kStringList && text.find(',') != std::string::npos
            ? fmt::format("write a list: `[{}]`", text)
        : near.empty() ? "choose one of these"
                       : fmt::format("did you mean `{}`?", near.front())) +
           (spec.way_out.empty()
                ? ""
                : fmt::format("{} {}", near.empty() ? ", or" : " Or", spec.way_out))});
  return false;
}

bool check_range(const KeySpec& spec, double value, const Node& node,
                 std::vector<Problem>& problems) {
  if (spec.in_range(value)) return true;
  std::string range = spec.range_text();
  if (range.find(',') == std::string::npos) {  // show the default bound that was exceeded
    if (value > spec.high) range = fmt::format("<= {:.0f}", spec.high);
    if (value < spec.low && range.empty()) range = fmt::format(">= {:.0f}", spec.low);
  }
  problems.push_back({fmt::format("`{}` is out of range", spec.path), node.origin.text(),
                      fmt::format("{} is not {}", shorten(node), range),
                      fmt::format("choose a value {}", range)});
  return false;
}

Json convert_list(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  if (node.is_map()) return report_wrong_type(spec, node, problems);
  Json list = Json::array();
  const std::vector<Node> single = node.is_scalar() ? std::vector<Node>{node} : std::vector<Node>{};
  for (const Node& item : node.is_scalar() ? single : node.items) {
    if (!item.is_scalar()) return report_wrong_type(spec, node, problems);
    if (check_choice(spec, item.scalar, item, problems)) list.push_back(item.scalar);
  }
  return list;
}

Json report_too_many_digits(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  problems.push_back({fmt::format("`{}` is out of range", spec.path), node.origin.text(),
                      shorten(node) + " does not fit 64 bits", "choose a smaller number"});
  return {};
}

Json convert_scalar(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  const std::string& text = node.scalar;
  if (!node.is_scalar()) return report_wrong_type(spec, node, problems);
  if (spec.type == KeyType::kString)
    return check_choice(spec, text, node, problems) ? Json(text) : Json();
  if (spec.type == KeyType::kSwitch && !to_bool(text))
    return check_choice(spec, text, node, problems) ? Json(text) : Json();
  if (node.quoted) return report_wrong_type(spec, node, problems);
  if (spec.type == KeyType::kBool || spec.type == KeyType::kSwitch) {
    if (const auto value = to_bool(text)) return *value;
  } else if (spec.type == KeyType::kInteger) {
    if (const auto value = parse<int64_t>(text))
      return check_range(spec, static_cast<double>(*value), node, problems) ? Json(*value) : Json();
    if (text.size() > 18 && text.find_first_not_of("+-0123456789") == std::string::npos)
      return report_too_many_digits(spec, node, problems);
  } else if (const auto value = parse<double>(text)) {
    return check_range(spec, *value, node, problems) ? Json(*value) : Json();
  }
  return report_wrong_type(spec, node, problems);
}

}  // namespace

Json convert(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  if (node.is_null()) return nullptr;
  if (spec.type == KeyType::kFiles) return convert_files(spec, node, problems);
  if (node.is_scalar() && std::find(spec.null_words.begin(), spec.null_words.end(), node.scalar) !=
                              spec.null_words.end())
    return nullptr;
  return spec.type == KeyType::kStringList ? convert_list(spec, node, problems)
                                           : convert_scalar(spec, node, problems);
}

Json default_value(const KeySpec& spec) {
  if (spec.fallback.empty()) return nullptr;
  std::vector<Problem> problems;
  const Json value = convert(spec, parse_yaml(spec.fallback, spec.path, false, problems), problems);
  REMATCH_CHECK(problems.empty(), spec.path);
  return value;
}

Json untyped_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return nullptr;
    case Node::Kind::kScalar:
      if (node.quoted) return node.scalar;
      if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
      if (const auto integer = parse<int64_t>(node.scalar)) return *integer;
      if (const auto number = parse<double>(node.scalar)) return *number;
      return node.scalar;
    case Node::Kind::kList: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(untyped_json(item));
      return list;
    }
    case Node::Kind::kMap: {
      Json map = Json::object();
      for (const Member& member : node.members) map[member.key] = untyped_json(member.value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace rematch
