#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "program/config/convert.h"
#include "program/config/draft.h"
#include "program/config/suggest.h"

namespace rematch {
namespace {

/// True if the value matches ValueRule::when.
bool rule_applies(const std::string& when, const Node& node) {
  if (when == "on" || when == "off") return is_off(node) == (when == "off");
  const auto equal = [&](const Node& value) {
    return value.is_scalar() && "=" + value.scalar == when;
  };
  return equal(node) || std::ranges::any_of(node.items, equal);
}

/// Checks the tree in one pass, from the root down.
class Checker {
 public:
  explicit Checker(Draft& config) : config_(config), problems_(config.problems) {}

  void check_section(const Node& node, const std::string& path) {
    if (node.is_null()) return;  // `training:` with nothing below it
    if (!node.is_map()) {
      problems_.push_back(
          {fmt::format("`{}` must be a mapping", path), node.origin.text(),
           fmt::format("it is {}", shorten(node)),
           fmt::format("write `{}:` with keys below it", path.substr(path.rfind('.') + 1))});
      return;
    }
    for (const Member& member : node.members) check_member(member, path);
  }

  void finish() {
    if (unknown_ > kMostUnknown) {
      problems_.push_back({"more unknown keys", "the same files",
                           fmt::format("{} more are not listed", unknown_ - kMostUnknown),
                           "check that this is a Rematch configuration"});
    }
  }

 private:
  void check_member(const Member& member, const std::string& section_path) {
    const std::string path = section_path.empty() ? member.key : section_path + "." + member.key;
    const bool is_one_name = member.key.find('.') == std::string::npos;
    if (const KeySpec* spec = is_one_name ? find_key(path) : nullptr) {
      check_key(*spec, member);
    } else if (is_one_name && is_section(path)) {
      check_section(member.value, path);
    } else {
      report_unknown(member, section_path, path);
    }
  }

  void report_unknown(const Member& member, const std::string& section_path,
                      const std::string& path) {
    if (++unknown_ > kMostUnknown) return;  // probably not a configuration
    std::string fix;
    Strings near = suggest_keys(section_path, member.key);
    for (std::string& name : near) name = "`" + name + "`";
    if (!near.empty()) fix = fmt::format("did you mean {}? ", join(near, " or "));
    if (find_key(member.key))
      fix = fmt::format("nest it below `{}:`, or use `--set {}=…`. ",
                        split(member.key, '.').front(), member.key);
    const KnownName* row = find_known_key(member.key);
    const std::string section_name =
        section_path.empty() ? "at the top level" : fmt::format("in section `{}`", section_path);
    problems_.push_back(
        {fmt::format("unknown key `{}`", shorten_bytes(path, kLongestKey)),
         member.key_origin.text(),
         row ? fmt::format("`{}` is a key of other trainers",
                           shorten_bytes(member.key, kLongestKey))
             : "no key has this name " + section_name,
         row ? known_fix(*row) : fix + "Correct or remove it; docs/config.md lists all keys"});
  }

  void check_key(const KeySpec& spec, const Member& member) {
    const Node& node = member.value;
    if (node.is_null()) {
      if (spec.state == KeyState::kHonoured) {
        config_.set(spec.path, spec.fallback,
                    fmt::format("default (null at {})", member.key_origin.text()), false);
      }
      return;
    }
    if (spec.state == KeyState::kIgnored) {
      warn(fmt::format("`{}` is ignored: {}", spec.path, spec.note), member.key_origin);
    } else if (spec.state == KeyState::kRefused) {
      if (!is_off(node)) refuse(spec, member, spec.note);
    } else {
      const size_t before = problems_.size();
      const KeyValue value = convert(spec, node, problems_);
      if (problems_.size() == before) apply_rules(spec, member);
      if (problems_.size() > before) return;
      const bool given = !is_null(value);
      config_.set(spec.path, given ? value : spec.fallback, node.origin.text(), given);
    }
  }

  void apply_rules(const KeySpec& spec, const Member& member) {
    for (const ValueRule& rule : spec.rules) {
      if (!rule_applies(rule.when, member.value)) continue;
      if (rule.refuses) {
        refuse(spec, member, rule.text);
      } else {
        const std::string value = rule.when[0] == '=' ? rule.when.substr(1) : shorten(member.value);
        warn(fmt::format("`{}: {}`: {}", spec.path, value, rule.text), member.value.origin);
      }
    }
  }

  void refuse(const KeySpec& spec, const Member& member, const std::string& advice) {
    problems_.push_back({fmt::format("`{}` is refused", spec.path), member.value.origin.text(),
                         fmt::format("it is {}", shorten(member.value)), advice});
  }

  void warn(std::string text, const Origin& where) {
    config_.warnings.push_back({std::move(text), where.text()});
  }

  static constexpr int kMostUnknown = 50;
  static constexpr size_t kLongestKey = 120;  // in messages
  Draft& config_;
  std::vector<Problem>& problems_;
  int unknown_ = 0;
};

}  // namespace

void check_keys(Draft& config) {
  Checker checker(config);
  checker.check_section(config.root, "");
  checker.finish();
}

}  // namespace rematch
