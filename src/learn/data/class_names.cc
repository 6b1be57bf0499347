#include "learn/data/class_names.h"

#include <fmt/core.h>

#include <map>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMaxExamples = 5;

/// Normalized label → its spellings and their counts.
using Names = std::map<std::string, std::map<std::string, int64_t>>;

void add_names(Names& names, const Dataset& data) {
  for (const Sample& sample : data.samples()) {
    for (const SceneObject& object : sample.objects)
      ++names[normalize_label(object.desc)][object.desc];
  }
}

}  // namespace

std::string spelling_warning(const Dataset& train, const Dataset* val) {
  Names names;
  add_names(names, train);
  if (val != nullptr) add_names(names, *val);
  int64_t num_classes = 0;
  std::vector<std::string> examples;
  for (const auto& [label, spellings] : names) {
    if (spellings.size() < 2 || ++num_classes > static_cast<int64_t>(kMaxExamples)) continue;
    std::vector<std::string> group;
    for (const auto& [name, count] : spellings)
      group.push_back(fmt::format("{} ({})", shown_label(name), count));
    examples.push_back(join(group, " / "));
  }
  if (num_classes == 0) return "";
  return fmt::format("{} in several spellings that differ only in case or spaces: {}{}; choose one",
                     counted(num_classes, "class", "classes"), join(examples, ", "),
                     num_classes > std::ssize(examples) ? ", …" : "");
}

}  // namespace rematch
