#include "program/config/suggest.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

#include "base/observe/catalog.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/config/schema.h"

namespace rematch {
namespace {

/// A typed name in the spelling of keys: no leading `-`, `_` for `-` and blanks, lower case.
std::string normalize(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(name, '-', '_');
  std::ranges::replace(name, ' ', '_');
  return lower_case(std::move(name));
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// The lower-case words of a text, which are made of letters and digits.
Strings words_of(const std::string& text) {
  std::string blanks = lower_case(text);
  for (char& c : blanks) c = std::isalnum(static_cast<unsigned char>(c)) ? c : ' ';
  Strings words = split(blanks, ' ');
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

bool is_option(const std::string& argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

}  // namespace

const KnownName* find_known_key(const std::string& typed) {
  return find_known(NameKind::kKey, normalize(last_part(typed)));
}

const KnownName* find_known_word(const std::string& typed) {
  const std::regex number("[0-9]+");
  return find_known(NameKind::kWord, normalize(std::regex_replace(typed, number, "n")));
}

std::string known_fix(const KnownName& row) {
  const std::string key = row.ours, remark = row.remark;
  return key.empty() ? remark : "use `" + key + "`" + (remark.empty() ? "" : ": " + remark);
}

std::string find_counterpart(const std::string& typed) {
  std::string name = normalize(typed);
  if (name.empty() || find_key(name)) return name;
  if (const KnownName* row = find_known_key(name)) return row->ours;
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
  if (!key.empty() || find_known_key(name) || name.size() < 6) return key;
  for (const std::string& near : suggest_keys("training", name)) {
    if (find_key(near)) return near;
  }
  return "";
}

Strings suggest_keys(const std::string& section, const std::string& name) {
  constexpr size_t kMost = 3;
  std::map<std::string, Strings> paths;  // by their last part
  Strings found, parts;
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

std::string guess_settings(const Strings& arguments) {
  Strings settings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const bool is_setting = is_option(name) || equals != std::string::npos;
    const std::string key = is_setting ? guess_key(name) : "";
    if (key.empty()) return "";
    std::string value = find_key(key)->type == KeyType::kBool ? "true" : "VALUE";
    if (equals != std::string::npos) {
      value = arguments[i].substr(equals + 1);
    } else if (i + 1 < arguments.size() && !is_option(arguments[i + 1])) {
      value = arguments[++i];
    }
    settings.push_back("--set " + shell_word(key + "=" + value));
  }
  return join(settings, " ");
}

std::vector<FoundName> search_names(const std::string& query) {
  const Strings words = words_of(query);
  const auto holds = [&words](const std::string& text) {
    return !words.empty() && std::ranges::all_of(words, [&](const std::string& word) {
      return lower_case(text).find(singular(word)) != std::string::npos;
    });
  };
  std::vector<FoundName> found, mentioned;
  for (FoundName& entry : all_names()) {
    if (holds(last_part(entry.name)))
      found.push_back(std::move(entry));
    else if (holds(entry.name + " " + entry.meaning))
      mentioned.push_back(std::move(entry));
  }
  found.insert(found.end(), mentioned.begin(), mentioned.end());
  return found;
}

}  // namespace rematch
