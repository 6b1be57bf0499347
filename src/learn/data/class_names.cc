#include "learn/data/class_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/first_few.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

/// Normalized label → its spellings and their counts.
using Names = std::map<std::string, std::map<std::string, int64_t>>;

std::string spelling_warning(const Names& names) {
  Strings examples;
  for (const auto& [label, spellings] : names) {
    if (spellings.size() < 2) continue;
    Strings group;
    for (const auto& [name, count] : spellings)
      group.push_back(fmt::format("{} ({})", shown_label(name), count));
    examples.push_back(join(group, " / "));
  }
  if (examples.empty()) return "";
  return fmt::format("{} in several spellings that differ only in case or spaces: {}; choose one",
                     counted(std::ssize(examples), "class", "classes"), first_few(examples));
}

std::string number_warning(const Names& names) {
  const auto is_number = [](const auto& each) {
    return !each.first.empty() && each.first.find_first_not_of("0123456789") == std::string::npos;
  };
  if (names.empty() || !std::ranges::all_of(names, is_number)) return "";
  return fmt::format(
      "the names of the classes are numbers ({}), and a language model knows words: give names "
      "where the records are made",
      shown_label(names.begin()->first));
}

}  // namespace

Strings class_name_warnings(const Dataset& train, const Dataset* val) {
  std::map<std::string, int64_t> counts;
  for (const Dataset* data : {&train, val}) {
    for (size_t i = 0; data != nullptr && i < data->samples().size(); ++i) {
      for (const SceneObject& object : data->samples()[i].objects) ++counts[object.desc];
    }
  }
  return class_name_warnings(counts);
}

Strings class_name_warnings(const std::map<std::string, int64_t>& counts) {
  Names names;
  for (const auto& [name, count] : counts) names[normalize_label(name)][name] = count;
  Strings warnings{spelling_warning(names), number_warning(names)};
  std::erase(warnings, "");
  return warnings;
}

}  // namespace rematch
