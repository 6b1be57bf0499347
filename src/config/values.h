#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "config/node.h"
#include "config/schema.h"

namespace rematch {

/// Something a user should know that does not stop the run.
struct Warning {
  std::string text;
  std::string where;  ///< file:line:col or "--set a.b.c"
};

/// Values of all honoured keys by dotted path, typed by the schema; each knows where it came from.
class Values {
 public:
  /// All keys at their defaults.
  Values();
  Values(const Values&);
  Values& operator=(const Values&) = delete;
  ~Values();

  /// True when a file or --set gives the key a value other than null.
  bool given(const std::string& path) const;
  /// True when the value is null, given or by default.
  bool is_null(const std::string& path) const;
  bool boolean(const std::string& path) const;
  int64_t integer(const std::string& path) const;
  double number(const std::string& path) const;
  std::string text(const std::string& path) const;
  const Json& json(const std::string& path) const;
  /// "file:line:col", "--set a.b.c", "default" or "derived from …".
  const std::string& origin(const std::string& path) const;
  /// The place to name to a user who should change the key: its origin when given, else the key's
  /// name.
  std::string where(const std::string& path) const;

  void set(const std::string& path, Json value, std::string origin, bool given);
  /// Gives a key a value that follows from others; it still counts as not given.
  void derive(const std::string& path, Json value, const std::string& from);

 private:
  struct Entry;
  const Entry& entry(const std::string& path) const;
  std::unordered_map<std::string, Entry> entries_;
};

/// The result of reading a tree against the schema.
struct CheckResult {
  Values values;
  std::vector<Warning> warnings;
};

/// Holds every key of the tree against the schema: unknown keys, wrong types, illegal values,
/// refused and removed keys become problems; ignored keys become one warning each. A key set to
/// null has its default.
CheckResult check_keys(const Node& root, std::vector<Problem>& problems);

}  // namespace rematch
