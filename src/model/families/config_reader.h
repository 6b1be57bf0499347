#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

/// @param key  path in config.json. @throws UserError (data)
[[noreturn]] void bad_config_value(const std::string& where, const std::string& key, const std::string& what, const std::string& fix);

/// Typed members of one object of config.json; an absent or null member gives the fallback. Keeps a reference to the object.
/// Getters throw UserError (data) that names the key for a value of another type or out of range.
class ConfigReader {
 public:
  /// @param where  the file. @param prefix  path of the object in it; empty = the document
  ConfigReader(const Json& value, std::string where, std::string prefix);

  /// The member; null when it is absent or null.
  const Json* find(const std::string& key) const;
  /// True for an explicit null.
  bool is_null(const std::string& key) const;
  std::string name(const std::string& key) const { return prefix_.empty() ? key : prefix_ + "." + key; }
  const std::string& where() const { return origin_.path; }
  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& fix) const;

  /// An integer ≥ `least`.
  int64_t integer(const std::string& key, int64_t fallback, int64_t least = 1) const;
  /// As integer(), but a list of equal numbers counts as that number ("patch_size": [16, 16]).
  int64_t side(const std::string& key, int64_t fallback) const;
  /// A finite number above 0.
  double number(const std::string& key, double fallback) const;
  bool boolean(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  /// The texts of a list; nothing when it is no list.
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<int64_t> integers(const std::string& key, std::vector<int64_t> fallback) const;
  /// An absent object is an empty one.
  ConfigReader object(const std::string& key) const;
  /// Refuses a text other than `wanted`, which stands for an absent one too.
  void require_text(const std::string& key, const std::string& wanted) const;

 private:
  JsonFields fields() const { return {*value_, origin_, prefix_}; }

  const Json* value_;
  JsonOrigin origin_;
  std::string prefix_;
};

}  // namespace rematch
