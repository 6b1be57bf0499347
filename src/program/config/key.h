#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/config/field.h"

namespace rematch {

struct LossKey;
struct Settings;
enum class TrainerVariant;

/// A type in words.
struct TypeWords {
  const char* word;    ///< one word, for the documentation
  const char* phrase;  ///< "must be …"; a switch's choices follow
};
const TypeWords& words_of(KeyType type);

/// Treatment of a key by the program.
enum class KeyState {
  kHonoured,
  kIgnored,  ///< accepted, warned about once, with the reason in `note`
  kRefused,  ///< an error unless the value means "off"; `note` says what to use instead
};

/// A value of an honoured key that is refused or gives a warning.
struct ValueRule {
  /// "=text" (in a list: any item), "off" (false, 0, empty) or "on" (anything else)
  std::string when;
  bool refuses = false;  ///< an error; otherwise a warning
  std::string text;      ///< warning or advice
};

/// A row of the ONE table of keys, which checks files, fills the settings structs and generates the
/// documentation. A key of a settings struct takes its type, default and choices from its field:
///
///     const KeysOf key("custom.extra.rollout_matching.", part<&Settings::match>);
///     key.of<&MatchSettings::maskiou_gate>().within(0, 1).says("pairs with a lower maskIoU are
///     rejected");
///
/// A key with another name than its field: `key("model", &ModelSettings::directory)`.
/// A key that only affects other keys (program/config/rules.cc) has no field:
/// `integer_key("training.effective_batch_size").says("…")`.
struct KeySpec {
  std::string path;  ///< dotted
  KeyType type = KeyType::kAny;
  KeyValue fallback;  ///< default
  KeyState state = KeyState::kHonoured;
  std::string note;  ///< reason (ignored) or advice (refused)
  std::string help;  ///< one line
  bool required = false;
  Strings choices;      ///< legal texts; empty = all
  std::string way_out;  ///< alternative to the choices, e.g. a key that disables the feature
  Strings null_words;   ///< texts that mean null, e.g. "auto"
  std::vector<ValueRule> rules;
  /// Bounds of a number. By default ±2^31, so that sums and products of several keys are exact.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  std::function<void(Settings&, const KeyValue&)> fill;  ///< writes the field; empty without one
  std::function<KeyValue(Settings&)> read;               ///< reads it; empty without one
  std::optional<TrainerVariant> only_in;  ///< only stage that fills the field; none = both

  // Builder calls, chained in keys_*.cc.

  KeySpec& at_least(double value) { return set_bounds(value, high, false, high_open); }
  KeySpec& above(double value) { return set_bounds(value, high, true, high_open); }
  KeySpec& below(double value) { return set_bounds(low, value, low_open, true); }
  /// Sets the upper bound and keeps the lower one.
  KeySpec& up_to(double value) { return set_bounds(low, value, low_open, false); }
  KeySpec& within(double from, double to) { return set_bounds(from, to, false, false); }
  KeySpec& one_of(Strings texts) {
    choices = std::move(texts);
    return *this;
  }
  /// Adds an alternative to the advice "choose one of these".
  KeySpec& or_else(std::string text) {
    way_out = std::move(text);
    return *this;
  }
  KeySpec& null_is(Strings texts) {
    null_words = std::move(texts);
    return *this;
  }
  /// Makes the default null: program/config/rules.cc derives the value, or the field keeps its
  /// initialiser.
  KeySpec& null_by_default() {
    fallback = {};
    return *this;
  }
  /// Fills the field from this key in one stage only; another key fills it in the other stage.
  KeySpec& in(TrainerVariant stage) {
    only_in = stage;
    return *this;
  }
  KeySpec& is_required() {
    required = true;
    return *this;
  }
  KeySpec& says(std::string text) {
    help = std::move(text);
    return *this;
  }
  KeySpec& warns(std::string when, std::string text) {
    rules.push_back({std::move(when), false, std::move(text)});
    return *this;
  }
  KeySpec& refuses(std::string when, std::string advice) {
    rules.push_back({std::move(when), true, std::move(advice)});
    return *this;
  }

  /// The default as shown in the documentation: "required", "null" or the text.
  std::string default_text() const;
  /// The legal range in words, e.g. "in (0, 1]"; "" if all values are legal.
  std::string range_text() const;
  bool in_range(double value) const;

 private:
  KeySpec& set_bounds(double from, double to, bool from_open, bool to_open) {
    low = from;
    high = to;
    low_open = from_open;
    high_open = to_open;
    return *this;
  }
};

/// A key of a given type without a field.
KeySpec plain_key(std::string path, KeyType type, KeyValue fallback = {});
inline KeySpec text_key(std::string path, KeyValue fallback = {}) {
  return plain_key(std::move(path), KeyType::kString, std::move(fallback));
}
inline KeySpec integer_key(std::string path) {
  return plain_key(std::move(path), KeyType::kInteger);
}
inline KeySpec boolean_key(std::string path, KeyValue fallback = {}) {
  return plain_key(std::move(path), KeyType::kBool, std::move(fallback));
}
/// The key of a loss setting; its value becomes an entry of Settings::losses.
KeySpec loss_key(std::string path, const LossKey& key);

/// The name of a struct's field, as the compilers write it: "… Field = &rematch::Struct::name; …".
template <auto Field>
constexpr std::string_view field_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("Field = "));
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

/// Describes the keys of one settings struct.
template <class Section>
class KeysOf {
 public:
  /// @param prefix  dotted path before every name, with its last dot
  /// @param at      finds the struct in the settings
  KeysOf(std::string prefix, Section& (*at)(Settings&)) : prefix_(std::move(prefix)), at_(at) {}

  template <class T>
  KeySpec operator()(const std::string& name, T Section::* field, std::string help = "") const {
    KeySpec spec = plain_key(prefix_ + name, key_type<T>(), key_value(Section{}.*field));
    spec.help = std::move(help);
    spec.choices = list_choices<T>();
    spec.fill = [at = at_, field](Settings& all, const KeyValue& value) {
      assign(at(all).*field, value);
    };
    spec.read = [at = at_, field](Settings& all) { return key_value(at(all).*field); };
    return spec;
  }

  /// The key that is called like its field.
  template <auto Field>
  KeySpec of(std::string help = "") const {
    return (*this)(std::string(field_name<Field>()), Field, std::move(help));
  }

 private:
  std::string prefix_;
  Section& (*at_)(Settings&);
};

}  // namespace rematch
