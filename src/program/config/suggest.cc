#include "program/config/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

/// A typed name in the spelling of keys: no leading `-`, `_` for `-`, lower case.
std::string normalize(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return lower_case(std::move(name));
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

const KnownName* find_row(const std::vector<KnownName>& table, const std::string& name) {
  for (const KnownName& row : table) {
    const std::vector<std::string> names = split(row.names, ' ');
    if (std::find(names.begin(), names.end(), name) != names.end()) return &row;
  }
  return nullptr;
}

/// The lower-case words of a text, which are made of letters and digits.
std::vector<std::string> words_of(const std::string& text) {
  std::string blanks = lower_case(text);
  for (char& c : blanks) c = std::isalnum(static_cast<unsigned char>(c)) ? c : ' ';
  std::vector<std::string> words = split(blanks, ' ');
  std::erase(words, "");
  return words;
}

/// "epoch" for "epochs".
std::string singular(const std::string& word) {
  const bool is_plural = word.size() > 3 && word.ends_with("s") && !word.ends_with("ss");
  return is_plural ? word.substr(0, word.size() - 1) : word;
}

std::vector<FoundName> all_names() {
  std::vector<FoundName> names;
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured) names.push_back({spec.path, spec.help});
  }
  for (const MetricRow& row : metric_table()) names.push_back({row.name, row.meaning, true});
  return names;
}

/// The names that a table of known names gives for a query.
std::vector<std::string> known_answers(const std::string& query) {
  std::string spelling = lower_case(query);
  std::replace(spelling.begin(), spelling.end(), ' ', '_');
  for (const std::string& name : {spelling, singular(spelling)}) {
    const KnownName* row = find_row(search_words(), name);
    if (row == nullptr) row = find_foreign(name);
    if (row == nullptr) continue;
    std::vector<std::string> names = split(fmt::format("{} {}", row->ours, row->also), ' ');
    std::erase(names, "");
    return names;
  }
  return {};
}

bool is_option(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

/// The value of our key for that of a foreign one: `imgsz` is a side, `max_pixels` an area.
std::string translate_value(const std::string& typed, const std::string& value) {
  const std::string name = normalize(typed);
  if (name != "imgsz" && name != "img_size") return value;
  int64_t side = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), side);
  const bool is_side =
      error == std::errc() && end == value.data() + value.size() && side > 0 && side < (1 << 20);
  return is_side ? std::to_string(side * side) : value;
}

/// A value as one line of YAML, a number without quotes where the key takes one; "" if it needs
/// several lines.
std::string value_text(const Node& value, const std::string& key) {
  const Node& single = value.is_list() && value.items.size() == 1 ? value.items.front() : value;
  const KeySpec* spec = find_key(key);
  const bool is_number =
      spec != nullptr && (spec->type == KeyType::kNumber || spec->type == KeyType::kInteger);
  if (single.is_scalar() && single.scalar.find('\n') == std::string::npos)
    return single.quoted && !is_number ? "\"" + single.scalar + "\"" : single.scalar;
  return single.is_list() ? shorten(single) : "";
}

/// Dotted keys with their values as nested YAML.
/// @param keys  sorted, from `prefix` on
std::string nest_keys(const std::map<std::string, std::string>& keys) {
  std::string text;
  std::vector<std::string> open;  // sections of the last key
  for (const auto& [key, value] : keys) {
    std::vector<std::string> parts = split(key, '.');
    const std::string name = parts.back();
    parts.pop_back();
    size_t depth = 0;
    while (depth < std::min(open.size(), parts.size()) && open[depth] == parts[depth]) ++depth;
    for (; depth < parts.size(); ++depth)
      text += fmt::format("\n{:{}}{}:", "", 4 + 2 * depth, parts[depth]);
    text += fmt::format("\n{:{}}{}: {}", "", 4 + 2 * depth, name, value);
    open = std::move(parts);
  }
  return text;
}

/// The members as nested YAML; those without a counterpart as comments.
std::string translate_members(const std::vector<const Member*>& flat) {
  std::map<std::string, std::string> keys;  // if two names mean one key, the first counts
  std::string others;
  for (const Member* member : flat) {
    const std::string key = find_counterpart(member->key),
                      value = translate_value(member->key, value_text(member->value, key));
    if (!key.empty() && !value.empty() && keys.emplace(key, value).second) continue;
    const KnownName* row = find_foreign(member->key);
    others += fmt::format("\n    # {}: {}", member->key,
                          keys.contains(key) ? "`" + key + "` is set above"
                          : row              ? foreign_fix(*row)
                                             : "no counterpart");
  }
  return nest_keys(keys) + others;
}

}  // namespace

const KnownName* find_foreign(const std::string& name) {
  return find_row(foreign_keys_table(), normalize(name));
}

std::string foreign_fix(const KnownName& row) {
  const std::string key = row.ours, remark = row.remark;
  return key.empty() ? remark : "use `" + key + "`" + (remark.empty() ? "" : ": " + remark);
}

std::string find_counterpart(const std::string& typed) {
  std::string name = normalize(typed);
  if (name.empty() || find_key(name)) return name;
  if (const KnownName* row = find_foreign(last_part(name))) return row->ours;
  // That of rollouts, which people mean by `temperature`, then that of training (`output_dir`).
  for (const std::string& section : {kRolloutMatching, std::string("training")}) {
    const KeySpec* spec = find_key(section + "." + name);
    if (spec != nullptr && spec->state == KeyState::kHonoured) return spec->path;
  }
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured && spec.path.ends_with("." + name)) return spec.path;
  }
  return "";
}

std::string guess_key(const std::string& typed) {
  std::string key = find_counterpart(typed);
  const std::string name = last_part(normalize(typed));
  // Every short word is within two edits of some key.
  if (!key.empty() || find_foreign(name) || name.size() < 6) return key;
  for (const std::string& near : suggest_keys("training", name)) {
    if (find_key(near)) return near;
  }
  return "";
}

std::vector<std::string> suggest_keys(const std::string& section, const std::string& name) {
  constexpr size_t kMost = 3;
  std::map<std::string, std::vector<std::string>> paths;  // by their last part
  std::vector<std::string> found, parts;
  for (const std::string& path : sections()) {
    if (!path.empty()) paths[last_part(path)].push_back(path);
  }
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kRefused) paths[last_part(spec.path)].push_back(spec.path);
  }
  if (const auto same = paths.find(last_part(name)); same != paths.end()) {
    found = same->second;
  } else {
    for (const auto& [part, unused] : paths) parts.push_back(part);
    for (const std::string& part : near_names(name, parts, parts.size()))
      found.insert(found.end(), paths[part].begin(), paths[part].end());
    std::stable_partition(found.begin(), found.end(), [&](const std::string& path) {
      return path == (section.empty() ? "" : section + ".") + last_part(path);
    });
  }
  found.resize(std::min(found.size(), kMost));
  return found;
}

std::string guess_settings(const std::vector<std::string>& arguments) {
  std::vector<std::string> settings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const bool is_setting = is_option(name) || equals != std::string::npos;
    const std::string key = is_setting ? guess_key(name) : "";
    if (key.empty()) return "";
    std::string value = "true";
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size() && !is_option(arguments[i + 1])) {
      value = arguments[++i];
    }
    settings.push_back("--set " + shell_word(key + "=" + translate_value(name, value)));
  }
  return join(settings, " ");
}

std::string guess_command(const std::string& typed, const std::vector<std::string>& names,
                          bool is_outer) {
  const KnownName* row = is_outer ? find_row(foreign_commands(), typed) : nullptr;
  if (row != nullptr) return row->ours;
  const std::vector<std::string> near = near_names(typed, names, 1);
  return near.empty() || near.front() == typed ? "" : near.front();
}

std::string command_advice(const std::string& typed) {
  const KnownName* row = find_row(foreign_commands(), typed);
  return row == nullptr ? "" : row->remark;
}

std::string guess_option(const std::string& command, const std::string& typed) {
  for (const KnownName& row : foreign_options()) {
    const std::vector<std::string> words = split(row.names, ' ');  // the first is the command
    const bool is_known =
        std::find(words.begin() + 1, words.end(), typed.substr(0, typed.find('='))) != words.end();
    if (is_known && words.front() == command) return row.ours;
  }
  return "";
}

std::vector<FoundName> search_names(const std::string& query, std::vector<std::string> known) {
  if (known.empty()) known = known_answers(query);
  const std::vector<std::string> words = words_of(query);
  const auto holds = [&words](const std::string& text) {
    return !words.empty() && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return lower_case(text).find(singular(word)) != std::string::npos;
    });
  };
  std::vector<FoundName> entries = all_names(), named(known.size()), found, mentioned;
  for (FoundName& entry : entries) {
    const auto at = std::find(known.begin(), known.end(), entry.name);
    if (at != known.end())
      named[static_cast<size_t>(at - known.begin())] = std::move(entry);
    else if (known.empty() && holds(last_part(entry.name)))
      found.push_back(std::move(entry));
    else if (known.empty() && holds(entry.name + " " + entry.meaning))
      mentioned.push_back(std::move(entry));
  }
  for (const auto* more : {&found, &mentioned})
    named.insert(named.end(), more->begin(), more->end());
  std::erase_if(named, [](const FoundName& entry) { return entry.name.empty(); });
  return named;
}

std::vector<std::string> near_known_names(const std::string& query) {
  const size_t dot = query.rfind('.');
  std::vector<std::string> keys =
      suggest_keys(dot == std::string::npos ? "" : query.substr(0, dot), query.substr(dot + 1));
  if (!keys.empty()) return keys;
  std::set<std::string> words;
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(more.begin(), more.end());
  };
  for (const KnownName& row : foreign_keys_table()) add(split(row.names, ' '));
  for (const KnownName& row : search_words()) add(split(row.names, ' '));
  for (const FoundName& entry : all_names()) add(words_of(entry.name));
  return near_names(lower_case(query), {words.begin(), words.end()});
}

std::optional<Problem> check_flat_arguments(const Node& root) {
  constexpr size_t kFewest = 3;
  std::vector<const Member*> flat;
  std::vector<std::string> names;
  size_t num_known = 0;
  for (const Member& member : root.members) {
    const bool is_ours =
        find_key(member.key) != nullptr || (is_section(member.key) && !member.value.is_scalar());
    if (is_ours || member.key.find('.') != std::string::npos || member.value.is_map()) continue;
    flat.push_back(&member);
    if (names.size() < kFewest) names.push_back(member.key);
    if (!find_counterpart(member.key).empty()) ++num_known;
  }
  if (num_known < kFewest || 2 * flat.size() < root.members.size()) return std::nullopt;
  return Problem{.error = "this is a flat file of arguments; here keys are grouped in sections",
                 .where = flat.front()->key_origin.text(),
                 .what = fmt::format("{} keys at the top level: {}{}", flat.size(),
                                     join(names, ", "), flat.size() > names.size() ? " …" : ""),
                 .fix = "write them as follows, or begin with `rematch init MODEL JSONL`:" +
                        translate_members(flat)};
}

}  // namespace rematch
