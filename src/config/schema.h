#pragma once
#include <limits>
#include <string>
#include <vector>

#include "config/capabilities.h"

namespace rematch {

/// What a key's value must be. Typing goes by this, never by YAML's guess.
enum class KeyType {
  kString,      ///< any scalar, its text as written
  kInteger,     ///< unquoted decimal digits
  kNumber,      ///< unquoted, finite; 1e-4 and 3 are numbers
  kBool,        ///< unquoted true, false, 1, 0
  kStringList,  ///< a list of scalars; one scalar is a list of one
  kMap,         ///< any mapping
  kAny,         ///< not looked at (ignored and refused keys)
};

/// What the program does with a key.
enum class KeyState {
  kHonoured,
  kIgnored,  ///< accepted, warned about once, with the reason in `note`
  kRefused,  ///< an error unless the value means "off"; `note` says what to use instead
};

/// A value of an honoured key that gets a treatment of its own.
struct ValueRule {
  enum class Verdict { kWarn, kRefuse, kNotBuilt };
  std::string when;  ///< "=text" (a list: one of its items), "on" (anything but null, false, 0, empty), ">1"
  Verdict verdict = Verdict::kRefuse;
  std::string text;                         ///< warning or advice; unused for kNotBuilt
  Capability needs = Capability::kPacking;  ///< for kNotBuilt
};

/// A row of the ONE table of keys: files are checked against it, defaults and documentation come from it.
/// Built by the functions below, e.g. `integer("training.seed", "42").at_least(0).says("…")`.
struct KeySpec {
  std::string path;  ///< dotted
  KeyType type = KeyType::kAny;
  std::string fallback;  ///< default as YAML text; empty = null
  KeyState state = KeyState::kHonoured;
  std::string note;  ///< reason (ignored) or advice (refused)
  std::string help;  ///< one line
  bool required = false;
  std::vector<std::string> choices;     ///< legal texts; empty = all
  std::string way_out;                  ///< beside the choices, e.g. switching the capability off
  std::vector<std::string> null_words;  ///< texts that mean null, e.g. "auto"
  std::vector<ValueRule> rules;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  KeySpec&& at_least(double value) &&;
  KeySpec&& above(double value) &&;
  KeySpec&& below(double value) &&;
  KeySpec&& within(double from, double to) &&;
  KeySpec&& one_of(std::vector<std::string> texts) &&;
  /// What else to do about a value that is not among the choices; joins "choose one of these".
  KeySpec&& or_else(std::string text) &&;
  KeySpec&& null_is(std::vector<std::string> texts) &&;
  KeySpec&& is_required() &&;
  KeySpec&& says(std::string text) &&;
  KeySpec&& warns(std::string when, std::string text) &&;
  KeySpec&& refuses(std::string when, std::string advice) &&;
  KeySpec&& needs(std::string when, Capability id) &&;

  /// The default as documentation shows it: "required", "null" or the text.
  std::string default_text() const;
  /// The legal range in words, "" when all values are legal, e.g. "in (0, 1]".
  std::string range_text() const;
  bool in_range(double value) const;
};

KeySpec text_key(std::string path, std::string fallback = "");
KeySpec integer(std::string path, std::string fallback = "");
KeySpec number(std::string path, std::string fallback = "");
KeySpec boolean(std::string path, std::string fallback = "");
KeySpec string_list(std::string path, std::string fallback = "");
KeySpec mapping(std::string path);
/// A key (with everything below it) that is accepted and ignored.
KeySpec ignored(std::string path, std::string reason);
/// A key (with everything below it) that is refused unless its value means "off".
KeySpec refused(std::string path, std::string advice);

/// The table, in the order of the documentation.
const std::vector<KeySpec>& schema();
/// The row of exactly that path, or nullptr.
const KeySpec* find_key(const std::string& path);
/// True when keys lie below `path` ("" is the root).
bool is_section(const std::string& path);
/// Suggestions for a key that does not exist, best first, at most three: the same name elsewhere, near names beside it, near names
/// elsewhere.
/// @param section  dotted path of the section it stands in. @param name  the unknown key
std::vector<std::string> suggest_keys(const std::string& section, const std::string& name);
/// The metrics that `training.metric_for_best_model` may name.
std::vector<std::string> evaluation_metrics(bool stage_2, bool has_rollout_section);

/// Prefix of every stage-2 key.
inline const std::string kRolloutMatching = "custom.extra.rollout_matching";

// Parts of the table, one for each schema_*.cc.
std::vector<KeySpec> model_keys();
std::vector<KeySpec> training_keys();
std::vector<KeySpec> custom_keys();
std::vector<KeySpec> rollout_keys();
std::vector<KeySpec> foreign_keys();

}  // namespace rematch
