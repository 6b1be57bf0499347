// The effective configuration as text and as args.json, and the documentation of all keys.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/explain.h"
#include "config/groups.h"

namespace rematch {
namespace {

/// Escapes line breaks.
std::string escape_newlines(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("\\n") : std::string(1, c);
  return line;
}

std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

std::string markdown_row(const KeySpec& spec) {
  const bool full_name = spec.state == KeyState::kRemoved;
  const std::string name = "`" + (full_name ? spec.path : name_in_group(spec.path)) + "`";
  if (spec.state != KeyState::kHonoured)
    return fmt::format("| {} | | | {} |\n", name, cell(state_words(spec)));
  const std::string rules = rule_words(spec);
  return fmt::format("| {} | {} | `{}` | {} |\n", name, type_word(spec), spec.default_text(),
                     cell(spec.help + (rules.empty() ? "" : ". " + rules)));
}

}  // namespace

Json effective_json(const ConfigResult& result) {
  Json root = Json::object();
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    Json* at = &root;
    for (const std::string& part : split(spec.path, '.')) at = &(*at)[part];
    *at = result.values->json(spec.path);
  }
  return root;
}

std::string effective_text(const ConfigResult& result) {
  std::string text;
  for (const std::string& file : result.files) text += fmt::format("read {}\n", file);
  size_t key_width = 0, value_width = 0;
  constexpr size_t kWidestAligned = 32;  // longer values only shift the origin next to them
  std::vector<const EffectiveValue*> rows;
  for (const EffectiveValue& row : result.effective) {
    rows.push_back(&row);
    key_width = std::max(key_width, name_in_group(row.key).size());
    if (row.value.size() <= kWidestAligned) value_width = std::max(value_width, row.value.size());
  }
  std::string heading;
  for (const EffectiveValue* row : sort_by_group(std::move(rows))) {
    const std::string group = key_group(row->key);
    const std::string next = group.empty() ? "(top level)" : group;
    if (next != heading) text += fmt::format("\n{}\n", next);
    heading = next;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", name_in_group(row->key), key_width,
                        escape_newlines(row->value), value_width, row->origin);
  }
  text += fmt::format("\nrun directory: {}\n", result.settings.output.run_dir);
  for (const Warning& warning : result.warnings)
    text += fmt::format("warning: {} ({})\n", warning.text, warning.where);
  return text;
}

std::string config_markdown() {
  std::string text =
      "# Configuration keys\n\n"
      "Generated from the table in `src/config/keys_*.cc`; `rematch check CONFIG` shows the values "
      "of a file and where they come "
      "from.\n\n"
      "A file is YAML. `extends: base.yaml` (or a list; `inherit` is a synonym) merges it over "
      "other files, whose paths are relative to the file that names them:\n"
      "bases left to right, the file itself last. Mappings merge, other values replace. `--set "
      "a.b.c=value` overrides one key.\n"
      "This table decides the type of a value: `1e-4` is a number, `no` is text where text is "
      "expected, booleans are `true`, `false`, `1` and `0` without quotes.\n"
      "A key set to null gets its default.\n"
      "\"(ms-swift)\" and \"(transformers)\" name the program that has the same default.\n";
  std::string group = "\n";
  for (const KeySpec& spec : schema()) {
    const bool whole_section =
        spec.path.find('.') == std::string::npos && spec.state != KeyState::kHonoured;
    const std::string next = spec.state == KeyState::kRemoved ? "Keys of earlier versions"
                             : whole_section                  ? "Sections of other programs"
                             : key_group(spec.path).empty()   ? "Top level"
                                                              : key_group(spec.path);
    if (next != group)
      text += fmt::format(
          "\n## {}\n\n| key | type | default | meaning and rule |\n|---|---|---|---|\n", next);
    group = next;
    text += markdown_row(spec);
  }
  return text;
}

}  // namespace rematch
