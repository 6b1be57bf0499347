#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/settings/settings.h"
#include "program/config/node.h"
#include "program/config/schema.h"

namespace rematch {

/// A message to the user that does not stop the run.
struct Warning {
  std::string text;
  std::string where;  ///< file:line:col or "--set a.b.c"
};

/// Values of all honoured keys by dotted path, typed by the schema, each with its origin.
class Values {
 public:
  /// All keys at their defaults.
  Values() : Values(Settings{}) {}
  /// The same, but for the fields in which `base` differs from the built-in settings.
  explicit Values(Settings base);
  Values(const Values&);
  Values& operator=(const Values&) = delete;
  ~Values();

  /// True if a file or --set gives the key a value other than null.
  bool is_given(const std::string& path) const;
  /// True if the value is null, whether given or by default.
  bool is_null(const std::string& path) const;
  bool boolean(const std::string& path) const;
  int64_t integer(const std::string& path) const;
  double number(const std::string& path) const;
  std::string text(const std::string& path) const;
  const Json& json(const std::string& path) const;
  /// "file:line:col", "--set a.b.c", "default" or "derived from …".
  const std::string& origin(const std::string& path) const;
  /// The place to show in messages: the origin if the key is given, else the key's name.
  std::string where(const std::string& path) const;

  void set(const std::string& path, Json value, std::string origin, bool given);
  /// Sets a value derived from other keys; the key still counts as not given.
  void derive(const std::string& path, Json value, const std::string& from);

 private:
  struct Entry;
  const Entry& entry(const std::string& path) const;
  std::unordered_map<std::string, Entry> entries_;
};

/// The result of checking a tree against the schema.
struct CheckResult {
  Values values;
  std::vector<Warning> warnings;
};

/// Checks every key of the tree against the schema. Unknown keys, wrong types, illegal values,
/// refused and removed keys become problems; each ignored key becomes a warning. A key set to null
/// gets its default.
/// @param base  the values of keys that the tree lacks
CheckResult check_keys(const Node& root, std::vector<Problem>& problems, const Settings& base = {});

}  // namespace rematch
