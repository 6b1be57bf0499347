// The effective configuration as text and as args.json.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/observe/columns.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/config.h"

namespace rematch {
namespace {

constexpr size_t kBriefColumns = 80, kMostRows = 34;  // of a brief list
constexpr size_t kWidestAligned = 32;  // of a whole one: longer values shift their origin

/// A value without line breaks and other control characters.
std::string one_line(const std::string& value) {
  std::string line;
  for (const char c : value) line += c == '\n' ? std::string("\\n") : std::string(1, c);
  return printable(line);
}

/// Shortens an origin: "base.yaml:3" for "dir/base.yaml:3:7", "from KEY" for a derived value.
std::string short_origin(const std::string& origin, const Strings& files) {
  for (const std::string& file : files) {
    if (!origin.starts_with(file + ":")) continue;
    const std::string place = origin.substr(file.size() + 1);
    return std::filesystem::path(file).filename().string() + ":" + place.substr(0, place.find(':'));
  }
  constexpr std::string_view kDerived = "derived ";
  return origin.starts_with(kDerived)
             ? origin.substr(kDerived.size(), origin.find(" / ") - kDerived.size())
             : origin;
}

bool is_derived(const EffectiveValue& row) { return row.origin.starts_with("derived"); }

bool is_shown(const EffectiveValue& row, const Settings& settings) {
  const bool for_vllm = row.key.starts_with(kRolloutMatching + ".vllm.");
  if (is_derived(row) && for_vllm && settings.backend != "vllm") return false;
  return !row.origin.starts_with("default");
}

/// The first rows in the table's order; if there are too many, derived values are left out first.
/// @param num_hidden  receives the number of rows left out
std::vector<const EffectiveValue*> select_rows(const ConfigResult& result, size_t& num_hidden) {
  std::vector<const EffectiveValue*> rows;
  for (const EffectiveValue& row : result.effective) {
    if (is_shown(row, result.settings)) rows.push_back(&row);
  }
  std::stable_partition(rows.begin(), rows.end(),
                        [](const EffectiveValue* row) { return !is_derived(*row); });
  num_hidden = rows.size() - std::min(rows.size(), kMostRows);
  rows.resize(rows.size() - num_hidden);
  std::ranges::sort(rows);  // all point into one table
  return rows;
}

/// A value with its origin at the right end of a line of `columns`. A long value is cut, an origin
/// never.
std::string brief_cells(const std::string& value, const std::string& origin, size_t columns) {
  constexpr size_t kGap = 2, kLeast = 12;
  const size_t used = display_width(origin) + kGap;
  const size_t room =
      std::max(std::min(kLeast, display_width(value)), columns - std::min(columns, used));
  return pad(shorten(value, room), room) + std::string(kGap, ' ') + origin;
}

/// Sorts rows by group; groups are in the order of their first row.
std::vector<const EffectiveValue*> sort_by_group(std::vector<const EffectiveValue*> rows) {
  std::map<std::string, size_t> place;
  for (const EffectiveValue* row : rows) place.emplace(key_group(row->key), place.size());
  std::ranges::stable_sort(rows, {}, [&](const auto* row) { return place[key_group(row->key)]; });
  return rows;
}

/// Rows in columns, with the groups as headings.
/// @param is_brief  lines of 80 columns, short origins at their right end
std::string value_table(std::vector<const EffectiveValue*> rows, const ConfigResult& result,
                        bool is_brief) {
  size_t name_width = 0, value_width = 0;
  for (const EffectiveValue* row : rows) {
    name_width = std::max(name_width, display_width(name_in_group(row->key)));
    const size_t columns = display_width(one_line(row->value));
    if (columns <= kWidestAligned) value_width = std::max(value_width, columns);
  }
  const size_t room = kBriefColumns - std::min(kBriefColumns, 2 + name_width + 2);
  std::string text, heading;
  for (const std::string& file : result.files) text += fmt::format("read {}\n", printable(file));
  for (const EffectiveValue* row : sort_by_group(std::move(rows))) {
    const std::string group = key_group(row->key), next = group.empty() ? "(top level)" : group;
    if (next != heading) text += (is_brief ? "" : "\n") + next + "\n";
    heading = next;
    const std::string value = one_line(row->value);
    text += fmt::format("  {}  {}\n", pad(name_in_group(row->key), name_width),
                        is_brief ? brief_cells(value, short_origin(row->origin, result.files), room)
                                 : pad(value, value_width) + "  " + row->origin);
  }
  return text;
}

}  // namespace

Json effective_json(const ConfigResult& result) {
  Json root = Json::object();
  for (const EffectiveValue& row : result.effective) {
    Json* at = &root;
    for (const std::string& part : split(row.key, '.')) at = &(*at)[part];
    *at = to_json(row.typed);
  }
  return root;
}

std::string effective_text(const ConfigResult& result) {
  std::vector<const EffectiveValue*> rows;
  for (const EffectiveValue& row : result.effective) rows.push_back(&row);
  std::string text = value_table(std::move(rows), result, false);
  text += fmt::format("\nrun directory: {}\n", result.settings.output.run_dir);
  for (const Warning& warning : result.warnings) text += "warning: " + warning.line() + "\n";
  return text;
}

std::string brief_text(const ConfigResult& result) {
  size_t num_hidden = 0;
  std::vector<const EffectiveValue*> rows = select_rows(result, num_hidden);
  const size_t num_defaults = result.effective.size() - rows.size() - num_hidden;
  std::string text = value_table(std::move(rows), result, true);
  if (num_hidden > 0) text += fmt::format("… {} more are set or derived\n", num_hidden);
  return text + fmt::format("{} other keys have their defaults (`--all` shows every value)\n",
                            num_defaults);
}

}  // namespace rematch
