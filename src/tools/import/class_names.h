#pragma once
#include <map>
#include <string>

namespace YAML {  // NOLINT(readability-identifier-naming): the name in yaml-cpp
class Node;
}

namespace rematch {

/// The `names` of a YAML of Ultralytics, by id.
/// @param path  of the YAML, for errors
/// @throws UserError (data); YAML::Exception for values of another type
std::map<std::string, std::string> read_yaml_names(const YAML::Node& yaml, const std::string& path);

/// The class names of ImportOptions::names by id; empty if it is not set. A file has one name a
/// line, or lines of id and name (`0,cat`, `0: cat`, `cat,0`), or is a YAML with `names` or a JSON
/// with `categories`.
/// @throws UserError
std::map<std::string, std::string> read_class_names(const std::string& names);

}  // namespace rematch
