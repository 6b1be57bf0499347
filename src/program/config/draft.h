#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "base/settings/settings.h"
#include "program/config/node.h"
#include "program/config/schema.h"

namespace rematch {

/// A message to the user that does not stop the run.
struct Warning {
  std::string text;
  std::string where;  ///< file:line:col or "--set a.b.c"

  std::string line() const { return text + " (" + where + ")"; }
};

/// A configuration in the making: the values of all honoured keys by dotted path, typed by the
/// schema, each with its origin. check_keys() reads them from the tree, apply_rules() derives
/// others; both add problems and warnings.
class Draft {
 public:
  Node root = {};         ///< merged tree of the files and overrides
  std::string path = {};  ///< path of the file, as the user gave it
  int world_size = 1;     ///< number of ranks
  bool rollouts = false;  ///< as Settings::rollouts, without a section
  std::vector<Problem> problems = {};
  std::vector<Warning> warnings = {};

  /// All keys at their defaults, but for the fields in which `base` differs from the built-in
  /// settings.
  explicit Draft(Settings base = {});

  /// True if a file or --set gives the key a value other than null.
  bool is_given(const std::string& key) const { return entry(key).given; }
  /// True if the value is null, whether given or by default.
  bool is_null(const std::string& key) const { return rematch::is_null(value(key)); }
  bool boolean(const std::string& key) const { return get<bool>(key); }
  int64_t integer(const std::string& key) const { return get<int64_t>(key); }
  double number(const std::string& key) const { return get<double>(key); }
  std::string text(const std::string& key) const { return get<std::string>(key); }
  const KeyValue& value(const std::string& key) const { return entry(key).value; }
  /// True if the value is not the default.
  bool is_changed(const std::string& key) const { return value(key) != find_key(key)->fallback; }
  /// "file:line:col", "--set a.b.c", "default" or "derived from …".
  const std::string& origin(const std::string& key) const { return entry(key).origin; }

  void set(const std::string& key, KeyValue value, std::string origin, bool given);
  /// Sets a value derived from other keys; the key still counts as not given.
  void derive(const std::string& key, KeyValue value, const std::string& from);

  /// Appends a problem or a warning where `key` was written.
  void problem(std::string error, const std::string& key, std::string what, std::string fix);
  void warn(std::string text, const std::string& key);
  void warn_no_effect(const std::string& key, const std::string& reason);

  /// Finds the value of a key or section in the tree; nullptr if there is none.
  const Node* find_written(const std::string& key) const;
  TrainerVariant variant() const;
  bool is_stage_2() const { return variant() == TrainerVariant::kRolloutMatching; }
  bool has_rollout_section() const;
  /// True if evaluations measure rollouts.
  bool rolls_out() const { return is_stage_2() || has_rollout_section(); }

 private:
  struct Entry {
    KeyValue value;
    std::string origin;
    bool given = false;
  };
  const Entry& entry(const std::string& key) const;
  /// The place to show in messages: the origin if the key is given, else the key's name.
  std::string where(const std::string& key) const { return is_given(key) ? origin(key) : key; }
  template <class T>
  const T& get(const std::string& key) const {
    const T* value = std::get_if<T>(&entry(key).value);
    REMATCH_CHECK(value != nullptr, key);
    return *value;
  }

  std::unordered_map<std::string, Entry> entries_;
};

/// Checks every key of the tree against the schema. Unknown keys, wrong types, illegal values,
/// refused and removed keys become problems; each ignored key becomes a warning. A key set to null
/// gets its default.
void check_keys(Draft& config);

/// Applies all rules between keys: required keys, fallbacks from one key to another,
/// contradictions.
void apply_rules(Draft& config);

// The rules, one file per subject.
void apply_model_rules(Draft& config);
void apply_training_rules(Draft& config);
/// Derives `training.zero_stage` from the ZeRO stage of a `deepspeed` section.
void apply_deepspeed_rules(Draft& config);
void apply_rollout_rules(Draft& config);
void apply_evaluation_rules(Draft& config);
/// Refuses what `training.zero_stage: 3` cannot do; runs after all others.
void apply_shard_rules(Draft& config);

}  // namespace rematch
