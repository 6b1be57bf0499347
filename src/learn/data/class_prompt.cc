#include "learn/data/class_prompt.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <regex>

#include "base/first_few.h"
#include "base/text.h"
#include "learn/data/class_list.h"

namespace rematch {
namespace {

constexpr size_t kMostClasses = 40;
constexpr const char* kLabels = " Labels: ";

}  // namespace

ClassPrompt class_list_prompt(const Dataset& train, const std::string& prompt) {
  std::map<std::string, int64_t> counts;
  int64_t num_objects = 0;
  for (const Sample& sample : train.samples()) {
    if (!sample.prompt.empty()) return {};
    for (const SceneObject& object : sample.objects) {
      ++counts[object.desc];
      ++num_objects;
    }
  }
  if (counts.empty() || num_objects < 2 * std::ssize(counts)) return {};
  if (counts.size() > kMostClasses)
    return {
        .note = fmt::format(
            "{} classes are too many for the prompt; `rematch data from-… --prompt-classes` asks "
            "for some",
            counts.size())};
  Strings names;
  for (const auto& [name, count] : counts) names.push_back(name);
  std::ranges::stable_sort(names, std::greater(),
                           [&](const auto& name) { return counts.at(name); });
  const bool has_commas = join(names, "").find(',') != prompt.npos;
  return {.text = fmt::format("{}{}{}.", prompt, kLabels, join(names, has_commas ? "; " : ", "))};
}

Strings unlisted_classes(const Dataset& train, const std::string& prompt) {
  const size_t list = prompt.find(kLabels);
  if (list == prompt.npos || !train.samples().front().prompt.empty()) return {};
  const auto lines = [](const std::string& text) {
    return std::regex_replace("," + text + ",", std::regex("[:;,.] *"), "\n");
  };
  const std::string listed = lines(prompt.substr(list));
  Strings lacking = ClassNames(train.samples()).all();
  std::erase_if(lacking, [&](const auto& name) { return listed.find(lines(name)) != listed.npos; });
  if (lacking.empty()) return {};
  return {fmt::format("the class list in the checkpoint's user_prompt lacks {}: correct it",
                      first_few(lacking))};
}

}  // namespace rematch
