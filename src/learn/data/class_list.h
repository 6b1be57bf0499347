#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// The names of the objects of a data set, by which lists in prompts are recognised.
class ClassNames {
 public:
  explicit ClassNames(const std::vector<Sample>& samples);

  /// Each name once, ascending. What only a prompt names is not among them.
  const Strings& all() const { return names_; }
  /// ASCII letter case does not matter.
  bool has(std::string_view name) const;
  /// Bytes of the longest name.
  size_t longest() const { return longest_; }

 private:
  Strings names_;
  std::unordered_set<std::string> lower_;
  size_t longest_ = 0;
};

/// A list of class names in a prompt: "cup, spoon and plate" or "[cup]".
struct ClassList {
  size_t begin = 0, end = 0;  ///< bytes of the prompt
  Strings names;              ///< as written
  Strings gaps;               ///< the text between neighbours
};

/// Finds the longest list: names with commas, other marks, line breaks, "and" or "or" between them.
/// After a colon or an opening bracket, and up to the end of a sentence or line or a closing
/// bracket, a list may be one name, and may have names that no object has. Elsewhere it has two
/// names or more.
std::optional<ClassList> find_class_list(std::string_view prompt, const ClassNames& classes);

/// The prompt with other names in the place of a list, and the same marks between them.
std::string with_names(std::string_view prompt, const ClassList& list, const Strings& names);

}  // namespace rematch
