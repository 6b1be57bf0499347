#include "program/config/convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace rematch {
namespace {

constexpr double kMostWeight = 1000;  // of a file
constexpr const char* kFileFix =
    "write `data/train.jsonl`, `[a.jsonl, b.jsonl]`, or a list of `{path: a.jsonl, weight: 0.5}`";

/// Some YAML parsers read 017 as 15, others as 17.
bool looks_octal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// Parses a whole text as a number. @tparam Number  int64_t or double
template <class Number>
std::optional<Number> parse(std::string_view text) {
  if (looks_octal(text)) return std::nullopt;
  // from_chars takes no plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
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
  return words_of(spec.type).phrase +
         (spec.type == KeyType::kSwitch ? join(spec.choices, ", ") : std::string());
}

/// A usual value of a number without a default.
const char* example_of(const std::string& name, bool is_integer) {
  if (!is_integer) return "1e-4";
  if (name.ends_with("_pixels")) return "1048576";
  return name.find("_len") != std::string::npos ? "4096" : "8";
}

/// Advice for a value of the wrong type.
std::string type_advice(const KeySpec& spec, const Node& node) {
  const std::string name = spec.path.substr(spec.path.rfind('.') + 1);
  const bool is_integer = spec.type == KeyType::kInteger;
  if (node.is_map())
    return fmt::format("`{}` has no keys below it; write `{}: VALUE`", spec.path, name);
  if ((is_integer || spec.type == KeyType::kNumber) && looks_octal(node.scalar))
    return "remove the leading zeros: programs disagree on whether such a number is octal";
  const std::string example =
      is_null(spec.fallback) ? example_of(name, is_integer) : yaml_text(spec.fallback);
  switch (spec.type) {
    case KeyType::kBool:
      return fmt::format("write `{}: true` or `{}: false`, without quotes", name, name);
    case KeyType::kSwitch: return fmt::format("write {}, without quotes", join(spec.choices, ", "));
    case KeyType::kInteger:
    case KeyType::kNumber:
      return fmt::format("write {} without quotes, e.g. `{}: {}`",
                         is_integer ? "decimal digits" : "a finite number", name, example);
    default:
      return fmt::format("write {} for `{}`; quote text that YAML would split", type_name(spec),
                         name);
  }
}

/// Converts the value of one key.
class Converter {
 public:
  Converter(const KeySpec& spec, std::vector<Problem>& problems)
      : spec_(spec), problems_(problems) {}

  KeyValue list(const Node& node) const {
    Strings texts;
    for (const Node& item : node.as_list()) {
      if (!item.is_scalar()) return wrong_type(node);
      if (check_choice(item)) texts.push_back(item.scalar);
    }
    return texts;
  }

  KeyValue scalar(const Node& node) const {
    const std::string& text = node.scalar;
    if (!node.is_scalar()) return wrong_type(node);
    if (spec_.type == KeyType::kString || (spec_.type == KeyType::kSwitch && !to_bool(text)))
      return check_choice(node) ? KeyValue(text) : KeyValue();
    if (node.quoted) return wrong_type(node);
    if (spec_.type == KeyType::kBool || spec_.type == KeyType::kSwitch) {
      if (const auto value = to_bool(text)) return *value;
    } else if (spec_.type == KeyType::kInteger) {
      if (const auto value = parse<int64_t>(text))
        return check_range(static_cast<double>(*value), node) ? KeyValue(*value) : KeyValue();
      if (text.size() > 18 && text.find_first_not_of("+-0123456789") == std::string::npos)
        return report("is out of range", node, shorten(node) + " does not fit 64 bits",
                      "choose a smaller number");
    } else if (const auto value = parse<double>(text)) {
      return check_range(*value, node) ? KeyValue(*value) : KeyValue();
    }
    return wrong_type(node);
  }

  KeyValue files(const Node& node) const {
    if (node.is_list() && node.items.empty())
      return report_file("no file is listed", node, "the list is empty");
    std::vector<TrainFile> files;
    for (const Node& item : node.as_list()) files.push_back(file(item));
    return files;
  }

 private:
  KeyValue report(const std::string& error, const Node& node, std::string what,
                  std::string fix) const {
    problems_.push_back(
        {fmt::format("`{}`{}{}", spec_.path, error.front() == ':' ? "" : " ", error),
         node.origin.text(), std::move(what), std::move(fix)});
    return {};
  }

  KeyValue wrong_type(const Node& node) const {
    return report("must be " + type_name(spec_), node, fmt::format("it is {}", shorten(node)),
                  type_advice(spec_, node));
  }

  bool check_choice(const Node& node) const {
    const auto& choices = spec_.choices;
    const auto covers = [&](const ValueRule& rule) { return rule.when == "=" + node.scalar; };
    if (choices.empty() || contains(choices, node.scalar)) return true;
    if (std::ranges::any_of(spec_.rules, covers)) return false;
    const Strings near = near_names(node.scalar, choices);
    const bool is_joined =
        spec_.type == KeyType::kStringList && node.scalar.find(',') != std::string::npos;
    std::string fix = is_joined      ? fmt::format("write a list: `[{}]`", node.scalar)
                      : near.empty() ? "choose one of these"
                                     : fmt::format("did you mean `{}`?", near.front());
    if (!spec_.way_out.empty()) fix += (near.empty() ? ", or " : " Or ") + spec_.way_out;
    report(fmt::format("cannot be `{}`", shorten(node)), node,
           fmt::format("legal values: {}", join(choices, ", ")), std::move(fix));
    return false;
  }

  bool check_range(double value, const Node& node) const {
    if (spec_.in_range(value)) return true;
    std::string range = spec_.range_text();
    if (range.find(',') == std::string::npos) {  // show the default bound that was exceeded
      if (value > spec_.high) range = fmt::format("<= {:.0f}", spec_.high);
      if (value < spec_.low && range.empty()) range = fmt::format(">= {:.0f}", spec_.low);
    }
    report("is out of range", node, fmt::format("{} is not {}", shorten(node), range),
           fmt::format("choose a value {}", range));
    return false;
  }

  KeyValue report_file(const std::string& error, const Node& node, std::string what,
                       std::string fix = kFileFix) const {
    return report(": " + error, node, std::move(what), std::move(fix));
  }

  TrainFile file(const Node& node) const {
    if (!node.is_map()) return {.path = path(node)};
    for (const Member& member : node.members) {
      if (member.key != "path" && member.key != "weight")
        report_file(fmt::format("unknown key `{}` in an entry", member.key), member.value,
                    "a file has `path` and `weight`");
    }
    const Node* named = node.find("path");
    const Node* weight = node.find("weight");
    if (named == nullptr)
      report_file("an entry has no `path`", node, fmt::format("it is {}", shorten(node)));
    return {.path = named == nullptr ? "" : path(*named),
            .weight = weight == nullptr || weight->is_null() ? 1 : this->weight(*weight)};
  }

  std::string path(const Node& node) const {
    if (!node.is_scalar() || python_strip(node.scalar).empty())
      report_file("an entry is not a path", node, fmt::format("it is {}", shorten(node)));
    return node.scalar;
  }

  double weight(const Node& node) const {
    const double value = node.quoted ? 0 : parse<double>(node.scalar).value_or(0);
    if (value > 0 && value <= kMostWeight) return value;
    report_file(
        "a weight is out of range", node,
        fmt::format("{} is not a number above 0 and at most {}", shorten(node), kMostWeight),
        "0.5 uses half of the records in each epoch, 2 uses each twice; to use none, remove "
        "the file");
    return 1;
  }

  const KeySpec& spec_;
  std::vector<Problem>& problems_;
};

}  // namespace

KeyValue convert(const KeySpec& spec, const Node& node, std::vector<Problem>& problems) {
  const Converter converter(spec, problems);
  if (node.is_null() || (node.is_scalar() && contains(spec.null_words, node.scalar))) return {};
  // An empty path counts as missing.
  if (spec.type == KeyType::kFiles)
    return node.is_scalar() ? std::vector<TrainFile>{{.path = node.scalar}} : converter.files(node);
  return spec.type == KeyType::kStringList ? converter.list(node) : converter.scalar(node);
}

}  // namespace rematch
