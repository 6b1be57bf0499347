#include "program/config/explain.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace rematch {

const char* type_word(const KeySpec& spec) {
  return words_of(spec.choices.empty() || spec.type != KeyType::kString ? spec.type
                                                                        : KeyType::kSwitch)
      .word;
}

std::string rule_words(const KeySpec& spec) {
  std::vector<std::string> parts;
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

/// The state of a key that is not honoured, with its reason or advice.
std::string state_words(const KeySpec& spec) {
  return (spec.state == KeyState::kIgnored ? "accepted and ignored: "
                                           : "refused unless null, false or 0: ") +
         spec.note;
}

std::string key_text(const KeySpec& spec) {
  std::string text = spec.path + "\n";
  if (spec.state != KeyState::kHonoured) return text + fmt::format("  {}\n", state_words(spec));
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

Json make_property(const KeySpec& spec) {
  Json property;
  if (spec.state != KeyState::kHonoured) {
    property["description"] = state_words(spec);
    property["deprecated"] = true;
    return property;
  }
  if (const std::string type = words_of(spec.type).json; !type.empty())
    property["type"] = {type, "null"};
  const bool any_text = spec.choices.empty() || spec.type == KeyType::kStringList ||
                        !spec.null_words.empty() || !spec.way_out.empty();
  if (!any_text) {
    property["enum"] = spec.choices;
    if (spec.type == KeyType::kSwitch) {
      for (Json& choice : property["enum"])
        if (choice == "true" || choice == "false") choice = choice == "true";
    }
    property["enum"].push_back(nullptr);
  }
  const std::string rules = rule_words(spec);
  property["description"] = fmt::format("{} (default {}){}", spec.help, spec.default_text(),
                                        rules.empty() ? "" : ". " + rules);
  return property;
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

std::string config_json_schema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Rematch configuration"},
               {"type", "object"}};
  root["properties"] = {
      {"extends", {{"description", "a file, or a list of files, that this file overrides"}}},
      {"inherit", {{"description", "the same as extends"}}}};
  root["additionalProperties"] = false;
  for (const KeySpec& spec : schema()) {
    Json* object = &root;
    const std::vector<std::string> parts = split(spec.path, '.');
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      Json& section = (*object)["properties"][parts[i]];
      if (section.is_null())
        section = {{"type", {"object", "null"}},
                   {"properties", Json::object()},
                   {"additionalProperties", false}};
      object = &section;
    }
    (*object)["properties"][parts.back()] = make_property(spec);
  }
  return python_json(root, 2) + "\n";
}

}  // namespace rematch
