// The short form of the effective configuration.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/terminal_text.h"
#include "config/groups.h"
#include "config/schema.h"
#include "observe/columns.h"

namespace rematch {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kMostRows = 34;
constexpr size_t kWidestAligned = 20;  // longer values only shift the origin next to them

std::string clip_with_ellipsis(const std::string& text, size_t most) {
  return display_width(text) <= most ? text : clip(text, most - 1) + "…";
}

/// Shortens an origin: "base.yaml:3" for "dir/base.yaml:3:7", "from KEY" for a derived value.
std::string short_origin(const std::string& origin, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (!origin.starts_with(file + ":")) continue;
    const std::string place = origin.substr(file.size() + 1);
    return std::filesystem::path(file).filename().string() + ":" + place.substr(0, place.find(':'));
  }
  constexpr std::string_view kDerived = "derived ";
  return origin.starts_with(kDerived) ? origin.substr(kDerived.size()) : origin;
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
  std::vector<const EffectiveValue*> all, rows;
  for (const EffectiveValue& row : result.effective) {
    if (is_shown(row, result.settings)) all.push_back(&row);
  }
  const auto num_set = static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [](const EffectiveValue* row) { return !is_derived(*row); }));
  size_t set_left = std::min(num_set, kMostRows), derived_left = kMostRows - set_left;
  for (const EffectiveValue* row : all) {
    size_t& left = is_derived(*row) ? derived_left : set_left;
    if (left == 0) continue;
    --left;
    rows.push_back(row);
  }
  num_hidden = all.size() - rows.size();
  return rows;
}

std::string format_row(const std::string& name, size_t name_width, const std::string& value,
                       size_t value_width, const std::string& origin) {
  const size_t taken = 2 + name_width + 2 + 2;  // name and blanks
  const size_t room =
      kColumns > taken + display_width(origin) ? kColumns - taken - display_width(origin) : 0;
  const std::string shown = clip_with_ellipsis(value, std::max(room, value_width));
  const size_t columns = std::max(display_width(shown), value_width);
  const std::string where = clip_with_ellipsis(
      origin, std::max<size_t>(1, kColumns - std::min(kColumns - 1, taken + columns)));
  return fmt::format("  {}{}  {}{}  {}\n", name, std::string(name_width - display_width(name), ' '),
                     shown, std::string(columns - display_width(shown), ' '), where);
}

}  // namespace

std::string brief_text(const ConfigResult& result) {
  size_t num_hidden = 0;
  const std::vector<const EffectiveValue*> rows = sort_by_group(select_rows(result, num_hidden));
  std::string text;
  for (const std::string& file : result.files) text += fmt::format("read {}\n", printable(file));
  size_t name_width = 0, value_width = 0;
  for (const EffectiveValue* row : rows) {
    name_width = std::max(name_width, display_width(name_in_group(row->key)));
    const size_t columns = display_width(printable(row->value));
    if (columns <= kWidestAligned) value_width = std::max(value_width, columns);
  }
  std::string heading;
  for (const EffectiveValue* row : rows) {
    const std::string group = key_group(row->key);
    const std::string next = group.empty() ? "(top level)" : group;
    if (next != heading) text += next + "\n";
    heading = next;
    text += format_row(name_in_group(row->key), name_width, printable(row->value), value_width,
                       short_origin(row->origin, result.files));
  }
  if (num_hidden > 0) text += fmt::format("… {} more are set or derived\n", num_hidden);
  return text + fmt::format("{} other keys have their defaults (`--all` shows every value)\n",
                            result.effective.size() - rows.size() - num_hidden);
}

}  // namespace rematch
