#include "config/brief_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/terminal_text.h"
#include "base/text.h"
#include "config/schema.h"

namespace rematch {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kMostRows = 34;
constexpr size_t kNarrowestValue = 12;

/// Code points, which take a column each in most scripts.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string clipped(const std::string& text, size_t most) {
  if (width(text) <= most) return text;
  std::string kept;
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    next_code_point(text, at);
    if (++columns == most) break;
    kept += text.substr(begin, at - begin);
  }
  return kept + "…";
}

/// "base.yaml:3" for "dir/base.yaml:3:7": the directories stand above.
std::string short_origin(const std::string& origin, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (!origin.starts_with(file + ":")) continue;
    const std::string place = origin.substr(file.size() + 1);
    return std::filesystem::path(file).filename().string() + ":" + place.substr(0, place.find(':'));
  }
  return origin;
}

std::string section_of(const std::string& path) {
  if (path.starts_with(kRolloutMatching + ".")) return kRolloutMatching;
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "(top level)" : path.substr(0, dot);
}

std::string name_in(const std::string& section, const std::string& path) {
  return path.starts_with(section + ".") ? path.substr(section.size() + 1) : path;
}

bool is_shown(const EffectiveValue& row, const Settings& settings) {
  const bool is_derived = row.origin.starts_with("derived");
  const bool is_of_vllm = row.key.starts_with(kRolloutMatching + ".vllm.");
  if (is_derived && is_of_vllm && settings.backend != "vllm") return false;
  return !row.origin.starts_with("default");
}

std::string row_text(const std::string& name, size_t name_width, const std::string& value,
                     size_t value_width, const std::string& origin) {
  const size_t taken = 2 + name_width + 2 + 2;  // blanks and the name
  const size_t room = kColumns > taken + width(origin) ? kColumns - taken - width(origin) : 0;
  const std::string shown = clipped(value, std::max(room, kNarrowestValue));
  const size_t columns = std::max(width(shown), std::min(value_width, room));
  const std::string where =
      clipped(origin, std::max<size_t>(1, kColumns - std::min(kColumns - 1, taken + columns)));
  return fmt::format("  {}{}  {}{}  {}\n", name, std::string(name_width - width(name), ' '), shown,
                     std::string(columns - width(shown), ' '), where);
}

}  // namespace

std::string brief_text(const ConfigResult& result) {
  std::vector<const EffectiveValue*> rows;
  for (const EffectiveValue& row : result.effective) {
    if (is_shown(row, result.settings)) rows.push_back(&row);
  }
  std::string text;
  for (const std::string& file : result.files) text += fmt::format("read {}\n", printable(file));
  const size_t num_shown = std::min(rows.size(), kMostRows);
  size_t name_width = 0, value_width = 0;
  for (size_t i = 0; i < num_shown; ++i) {
    name_width = std::max(name_width, width(name_in(section_of(rows[i]->key), rows[i]->key)));
    const size_t columns = width(printable(rows[i]->value));
    if (columns <= 24) value_width = std::max(value_width, columns);
  }
  std::vector<std::string> sections;  // their keys may be apart in the table
  for (size_t i = 0; i < num_shown; ++i) {
    const std::string section = section_of(rows[i]->key);
    if (std::find(sections.begin(), sections.end(), section) == sections.end())
      sections.push_back(section);
  }
  for (const std::string& section : sections) {
    text += section + "\n";
    for (size_t i = 0; i < num_shown; ++i) {
      if (section_of(rows[i]->key) != section) continue;
      text += row_text(name_in(section, rows[i]->key), name_width, printable(rows[i]->value),
                       value_width, short_origin(rows[i]->origin, result.files));
    }
  }
  if (rows.size() > num_shown) text += fmt::format("… {} more are set\n", rows.size() - num_shown);
  return text + fmt::format("{} other keys have their defaults (`--all` shows every value)\n",
                            result.effective.size() - rows.size());
}

}  // namespace rematch
