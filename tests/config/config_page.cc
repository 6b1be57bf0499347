#include "config/config_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/explain.h"
#include "program/config/schema.h"

namespace rematch::test {
namespace {

/// `text` as lines of at most 100 columns; what follows the first is indented.
std::string markdown_lines(const std::string& text, size_t indent) {
  return wrapped(text, indent, 100) + "\n";
}

/// A key's rule without choices that its help names already.
std::string markdown_rule(const KeySpec& spec) {
  std::string rules = rule_words(spec);
  const bool names_all =
      std::all_of(spec.choices.begin(), spec.choices.end(), [&](const std::string& choice) {
        return spec.help.find("`" + choice + "`") != std::string::npos;
      });
  if (!spec.choices.empty() && names_all) {
    const size_t end = rules.find("; ");
    rules = end == std::string::npos ? "" : rules.substr(end + 2);
  }
  if (rules.starts_with(">=")) rules.replace(0, 2, "≥");  // a line must not begin with ">"
  return rules.empty() ? "" : ". " + rules;
}

std::string markdown_item(const KeySpec& spec) {
  return markdown_lines(
      fmt::format("- `{}` ({}, `{}`): {}{}", name_in_group(spec.path), type_word(spec),
                  spec.default_text(), spec.help, markdown_rule(spec)),
      2);
}

/// Keys of one state without effect, in the order of the table: an item for each reason.
std::string markdown_of_others(KeyState state) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const KeySpec& spec : schema()) {
    if (spec.state != state) continue;
    auto found = std::find_if(reasons.begin(), reasons.end(),
                              [&](const auto& reason) { return reason.first == spec.note; });
    if (found == reasons.end()) found = reasons.insert(found, {spec.note, {}});
    found->second.push_back("`" + spec.path + "`");
  }
  std::string text;
  for (const auto& [note, keys] : reasons)
    text += markdown_lines(fmt::format("- {}: {}", join(keys, ", "), note), 2);
  return text;
}

}  // namespace

std::string config_markdown() {
  std::string text =
      "# Configuration keys\n\n" +
      markdown_lines(
          "Each key with its type, its default, its meaning and its rule. Generated from "
          "`src/program/config/keys_*.cc`; `rematch check CONFIG` shows the values of a file and "
          "where they come from.",
          0) +
      "\n" +
      markdown_lines(
          "A file is YAML. `extends: base.yaml` (or a list; `inherit` is a synonym) merges it over "
          "other files, whose paths are relative to the file that names them: bases left to right, "
          "the file itself last. Mappings merge, other values replace. `--set a.b.c=value` "
          "overrides one key. The type decides how a value is read: `1e-4` is a number, `no` is "
          "text where text is expected, booleans are `true`, `false`, `1` and `0` without quotes. "
          "A key set to null gets its default. \"(ms-swift)\" and \"(transformers)\" name the "
          "program that has the same default.",
          0);
  std::string group = "\n";
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    const std::string next = key_group(spec.path).empty() ? "Top level" : key_group(spec.path);
    if (next != group) text += fmt::format("\n## {}\n\n", next);
    group = next;
    text += markdown_item(spec);
  }
  return text + "\n## Keys without effect\n\nAccepted and ignored, with one warning:\n\n" +
         markdown_of_others(KeyState::kIgnored) + "\nRefused unless null, false or 0:\n\n" +
         markdown_of_others(KeyState::kRefused);
}

}  // namespace rematch::test
