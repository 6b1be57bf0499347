#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/field.h"

namespace rematch {

struct LossKey;
struct Settings;
enum class TrainerVariant;

/// Treatment of a key by the program.
enum class KeyState {
  kHonoured,
  kIgnored,  ///< accepted, warned about once, with the reason in `note`
  kRefused,  ///< an error unless the value means "off"; `note` says what to use instead
  kRemoved,  ///< an error unless null; `note` says what to use instead
};

/// A value of an honoured key with special treatment.
struct ValueRule {
  /// "=text" (a list: one of its items), "off" (false, 0, empty), "on" (anything else)
  std::string when;
  bool refuses = false;  ///< an error; otherwise a warning
  std::string text;      ///< warning or advice
};

/// A row of the ONE table of keys: files are checked against it; the settings of the parts,
/// defaults and documentation come from it. A key of a settings struct takes type, default and
/// choices from its field:
///
///     const KeysOf key("custom.extra.rollout_matching.", part<&Settings::match>);
///     key("maskiou_gate", &MatchSettings::maskiou_gate).within(0, 1).says("pairs with a lower
///     maskIoU are rejected");
///
/// A key that only decides about other keys (config/rules.cc) has no field:
/// `integer("training.effective_batch_size").says("…")`.
struct KeySpec {
  std::string path;  ///< dotted
  KeyType type = KeyType::kAny;
  std::string fallback;  ///< default as YAML text; empty = null
  KeyState state = KeyState::kHonoured;
  std::string note;  ///< reason (ignored) or advice (refused)
  std::string help;  ///< one line
  bool required = false;
  std::vector<std::string> choices;  ///< legal texts; empty = all
  /// alternative to the choices, e.g. switching the capability off
  std::string way_out;
  std::vector<std::string> null_words;  ///< texts that mean null, e.g. "auto"
  std::vector<ValueRule> rules;
  /// Bounds of a number. Every number has bounds within which sums and products of several keys are
  /// exact: ±2^31 unless it says closer ones.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  /// writes the key's field; empty without one
  std::function<void(Settings&, const KeyValue&)> fill;
  /// the stage in which the field is filled from this key; none = both
  std::optional<TrainerVariant> only_in;

  // What a key's description says of it, chained.

  KeySpec&& at_least(double value) && { return bounded(value, high, false, high_open); }
  KeySpec&& above(double value) && { return bounded(value, high, true, high_open); }
  KeySpec&& below(double value) && { return bounded(low, value, low_open, true); }
  /// The greatest legal value; the least stays as it is.
  KeySpec&& up_to(double value) && { return bounded(low, value, low_open, false); }
  KeySpec&& within(double from, double to) && { return bounded(from, to, false, false); }
  KeySpec&& one_of(std::vector<std::string> texts) && {
    choices = std::move(texts);
    return std::move(*this);
  }
  /// Another remedy for a value that is not among the choices; added to "choose one of these".
  KeySpec&& or_else(std::string text) && {
    way_out = std::move(text);
    return std::move(*this);
  }
  KeySpec&& null_is(std::vector<std::string> texts) && {
    null_words = std::move(texts);
    return std::move(*this);
  }
  /// The default is null: the value is derived from other keys (config/rules.cc), or the field
  /// keeps its initialiser.
  KeySpec&& null_by_default() && {
    fallback.clear();
    return std::move(*this);
  }
  /// The field belongs to this key in one stage only; another key fills it in the other.
  KeySpec&& in(TrainerVariant stage) && {
    only_in = stage;
    return std::move(*this);
  }
  KeySpec&& is_required() && {
    required = true;
    return std::move(*this);
  }
  KeySpec&& says(std::string text) && {
    help = std::move(text);
    return std::move(*this);
  }
  KeySpec&& warns(std::string when, std::string text) && {
    rules.push_back({std::move(when), false, std::move(text)});
    return std::move(*this);
  }
  KeySpec&& refuses(std::string when, std::string advice) && {
    rules.push_back({std::move(when), true, std::move(advice)});
    return std::move(*this);
  }

  /// The default as documentation shows it: "required", "null" or the text.
  std::string default_text() const;
  /// The legal range in words, "" when all values are legal, e.g. "in (0, 1]".
  std::string range_text() const;
  bool in_range(double value) const;

 private:
  KeySpec&& bounded(double from, double to, bool from_open, bool to_open) {
    low = from;
    high = to;
    low_open = from_open;
    high_open = to_open;
    return std::move(*this);
  }
};

/// A key of that type without a field.
KeySpec plain_key(std::string path, KeyType type, std::string fallback);
KeySpec text_key(std::string path, std::string fallback = "");
KeySpec integer(std::string path, std::string fallback = "");
KeySpec number(std::string path, std::string fallback = "");
KeySpec boolean(std::string path, std::string fallback = "");
/// The key of a setting of a loss; its value becomes an entry of Settings::losses.
KeySpec loss_key(std::string path, const LossKey& key);
/// A key (with everything below it) that is accepted and ignored.
KeySpec ignored(std::string path, std::string reason);
/// A key (with everything below it) that is refused unless its value means "off".
KeySpec refused(std::string path, std::string advice);
/// A key of earlier versions: any value but null is an error.
KeySpec removed(std::string path, std::string advice);

/// Describes the keys of one settings struct.
template <class Section>
class KeysOf {
 public:
  /// @param prefix  dotted path in front of every name, with its last dot. @param at  where the
  /// struct lies in all settings
  KeysOf(std::string prefix, Section& (*at)(Settings&)) : prefix_(std::move(prefix)), at_(at) {}

  template <class T>
  KeySpec operator()(const char* name, T Section::* field) const {
    KeySpec spec = plain_key(prefix_ + name, key_type<T>(), yaml_text(key_value(Section{}.*field)));
    spec.choices = choices_of<T>();
    spec.fill = [at = at_, field](Settings& all, const KeyValue& value) {
      assign(at(all).*field, value);
    };
    return spec;
  }

 private:
  std::string prefix_;
  Section& (*at_)(Settings&);
};

}  // namespace rematch
