#pragma once
#include <optional>
#include <string>
#include <vector>

#include "program/config/node.h"

namespace rematch {

/// Names that users of other programs type, and their counterpart here
/// (program/config/known_names.cc).
struct KnownName {
  const char* names;      ///< what is typed, separated by blanks
  const char* ours;       ///< a dotted key, a command or an option; "" if there is none
  const char* remark;     ///< remark, or advice if `ours` is ""
  const char* also = "";  ///< other names that `rematch explain` shows, separated by blanks
};

/// Keys of other trainers; `ours` is a key.
const std::vector<KnownName>& foreign_keys_table();
/// Words of the field that `rematch explain` answers with the names in `also`; `_` for a blank.
const std::vector<KnownName>& search_words();
/// Commands of other programs; `ours` is a command, or "" with advice in `remark`.
const std::vector<KnownName>& foreign_commands();
/// Options of other programs, as "COMMAND --option"; `ours` is an option with its argument.
const std::vector<KnownName>& foreign_options();
/// True for options of other programs that name an input, which has no option here.
bool is_input_option(const std::string& option);

/// Finds the row of a key as typed, ignoring case and reading `-` as `_`; nullptr if there is none.
const KnownName* find_foreign(const std::string& name);
/// Advice for a foreign key, as the `fix` of an error.
std::string foreign_fix(const KnownName& row);

/// Finds our key for a name as typed (`max_steps`, `--lr`, `training.max_steps`): a whole path, a
/// foreign key, or the end of a path; "" if there is none.
std::string find_counterpart(const std::string& typed);
/// The same, or else the nearest key; "" if nothing is near.
std::string guess_key(const std::string& typed);
/// Suggests at most three existing keys for an unknown one, best first: the same name in another
/// section, similar names in this section, similar names in others.
/// @param section  dotted path of the section
/// @param name     the unknown key
std::vector<std::string> suggest_keys(const std::string& section, const std::string& name);

/// The `--set` options that arguments such as `--max_steps 3`, `--lr=1e-4` and `seed=1` mean; ""
/// if one of them is not a key.
std::string guess_settings(const std::vector<std::string>& arguments);
/// Advice for a command of another program that has no counterpart; "" otherwise.
std::string command_advice(const std::string& typed);
/// Guesses the command among `names` for one that does not exist; "" if nothing is near.
/// @param is_outer  of the program, not of a command
std::string guess_command(const std::string& typed, const std::vector<std::string>& names,
                          bool is_outer);
/// Our option for one of another program, e.g. "--draw DIR"; "" if there is none.
std::string guess_option(const std::string& command, const std::string& typed);

/// A key or a metric that a search found.
struct FoundName {
  std::string name, meaning;
  bool is_metric = false;
};
/// Searches the names and meanings of all honoured keys and of all metrics for the words of a query
/// ("lr", "mAP", "batch size"), names before meanings.
/// @param known  names that answer the query; if empty, the tables of known names are asked
std::vector<FoundName> search_names(const std::string& query, std::vector<std::string> known = {});
/// Names and words nearest to a query that nothing was found for; may be empty.
std::vector<std::string> near_known_names(const std::string& query);

/// Detects a file of flat arguments (`model:`, `train_type:`, `lora_rank:` … at the top level) and
/// returns one error whose fix has the same values in sections; nullopt for other files.
std::optional<Problem> check_flat_arguments(const Node& root);

}  // namespace rematch
