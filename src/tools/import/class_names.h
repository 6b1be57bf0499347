#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace YAML {  // NOLINT(readability-identifier-naming): the name in yaml-cpp
class Node;
}

namespace rematch {

/// The names of classes by their ids.
class NamesById {
 public:
  NamesById() = default;
  /// @param names  ImportOptions::names: "cat,dog" or a file with one name a line, or lines of id
  /// and name (`0,cat`, `0: cat`), a YAML or JSON of names; empty: no names
  /// @throws UserError
  explicit NamesById(const std::string& names);
  /// The `names` of a YAML of Ultralytics, or the `categories` of Label Studio's notes.json.
  /// @throws UserError (data); YAML::Exception for values of another type
  NamesById(const YAML::Node& yaml, const std::string& path);

  bool is_empty() const { return by_id_.empty(); }
  /// The names in the order of their numbers.
  Strings in_order() const;
  /// The name of an id; nullopt for an id without one. A text that is not an id is a name itself.
  std::optional<std::string> find(const std::string& text, bool is_id) const;
  /// The same of a number or a text; "" for another value.
  std::optional<std::string> of_value(const Json& value) const;

  bool operator==(const NamesById&) const = default;

 private:
  /// @param id  empty: the number of names before it
  /// @throws UserError (data) for an id that is there
  void add(const std::string& id, const std::string& name, const std::string& path);
  /// @param is_file  else words of the command line
  void read_lines(Strings lines, const std::string& path, bool is_file);

  std::map<std::string, std::string> by_id_;
};

/// Reads a YAML file.
/// @throws UserError (data) if it is not UTF-8; YAML::Exception if it is no YAML, or has a key
/// twice
YAML::Node read_yaml_file(const std::string& path);

}  // namespace rematch
