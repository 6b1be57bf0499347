#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// A name that users of other programs type, and its counterpart here.
struct KnownName {
  const char* names;        ///< what is typed, separated by blanks
  const char* ours;         ///< a dotted key, a command, an option or a metric; "" for none
  const char* remark = "";  ///< advice if `ours` is ""
};
enum class NameKind { kKey, kCommand, kOption, kWord };

/// The tables (program/config/known_names.cc).
std::span<const KnownName> known_names(NameKind kind);
/// Finds the row of a name; nullptr if there is none.
const KnownName* find_known(NameKind kind, const std::string& name);
/// The same for a key as typed, ignoring case and its section, and reading `-` and blanks as `_`.
const KnownName* find_known_key(const std::string& typed);
/// The row of a word that tables print, e.g. "found by 8 samples"; nullptr if there is none.
const KnownName* find_known_word(const std::string& typed);
/// Advice for a key of another program, as the `fix` of an error.
std::string known_fix(const KnownName& row);

/// Finds our key for a name as typed (`max_steps`, `--lr`, `training.max_steps`): a whole path, a
/// key of another program, or the end of a path; "" if there is none.
std::string find_counterpart(const std::string& typed);
/// The same, or else the nearest key; "" if nothing is near.
std::string guess_key(const std::string& typed);
/// Suggests at most three existing keys for an unknown one, best first: the same name in another
/// section, similar names in this section, similar names in others.
/// @param section  dotted path of the section
/// @param name     the unknown key
Strings suggest_keys(const std::string& section, const std::string& name);
/// The `--set` options that arguments such as `--max_steps 3`, `--lr=1e-4` and `seed=1` mean; ""
/// if one of them is not a key.
std::string guess_settings(const Strings& arguments);

/// A key or a metric that a search found.
struct FoundName {
  std::string name, meaning;
  bool is_metric = false;
};
/// Searches the names and meanings of all honoured keys and of all metrics for the words of a
/// query, names before meanings.
std::vector<FoundName> search_names(const std::string& query);

}  // namespace rematch
