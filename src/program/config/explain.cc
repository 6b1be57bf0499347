#include "program/config/explain.h"

#include <fmt/core.h>

#include "base/text.h"

namespace rematch {

const char* type_word(const KeySpec& spec) {
  return words_of(spec.choices.empty() || spec.type != KeyType::kString ? spec.type
                                                                        : KeyType::kSwitch)
      .word;
}

std::string rule_words(const KeySpec& spec) {
  Strings parts;
  if (!spec.choices.empty()) parts.push_back("`" + join(spec.choices, "`, `") + "`");
  if (!spec.range_text().empty()) parts.push_back(spec.range_text());
  for (const ValueRule& rule : spec.rules) {
    const std::string when = rule.when == "on"    ? "true"
                             : rule.when == "off" ? "false"
                                                  : "`" + rule.when.substr(1) + "`";
    parts.push_back(
        fmt::format("{}: {}, {}", when, rule.refuses ? "refused" : "warning", rule.text));
  }
  return join(parts, "; ");
}

namespace {

std::string key_text(const KeySpec& spec) {
  std::string text = spec.path + "\n";
  if (spec.state == KeyState::kIgnored) return text + "  accepted and ignored: " + spec.note + "\n";
  if (spec.state == KeyState::kRefused)
    return text + "  refused unless null, false or 0: " + spec.note + "\n";
  text += fmt::format("  {}, default {}\n  {}\n", type_word(spec), spec.default_text(), spec.help);
  const std::string rules = rule_words(spec);
  if (!rules.empty()) text += fmt::format("  {}\n", rules);
  return text;
}

std::string section_text(const std::string& section) {
  std::string text = section + ":\n";
  for (const KeySpec& spec : schema()) {
    if (spec.path.rfind(section + ".", 0) != 0 || spec.state != KeyState::kHonoured) continue;
    text += fmt::format("  {}\n    {}\n", spec.path.substr(section.size() + 1), spec.help);
  }
  return text;
}

}  // namespace

std::string explain_key(const std::string& name) {
  if (const KeySpec* spec = find_key(name)) return key_text(*spec);
  if (!name.empty() && is_section(name)) return section_text(name);
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "\n") + more; };
  for (const KeySpec& spec : schema()) {
    if (spec.path.ends_with("." + name)) add(key_text(spec));
  }
  for (const std::string& section : sections()) {
    if (section.ends_with("." + name)) add(section_text(section));
  }
  return text;
}

}  // namespace rematch
