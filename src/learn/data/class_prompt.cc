#include "learn/data/class_prompt.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/first_few.h"
#include "base/text.h"

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
            "{} classes are too many for the prompt: the model must learn the names, or `rematch "
            "data from-… --prompt-classes` asks each image for some of them",
            counts.size())};
  std::vector<std::pair<std::string, int64_t>> classes(counts.begin(), counts.end());
  std::ranges::stable_sort(classes, std::greater(), [](const auto& row) { return row.second; });
  Strings names;
  bool has_commas = false;
  for (const auto& [name, count] : classes) {
    names.push_back(name);
    has_commas = has_commas || name.find(',') != std::string::npos;
  }
  return {.text = fmt::format("{}{}{}.", prompt, kLabels, join(names, has_commas ? "; " : ", "))};
}

std::string unlisted_classes(const Dataset& train, const std::string& prompt) {
  const size_t list = prompt.find(kLabels);
  std::set<std::string> lacking;
  for (const Sample& sample : train.samples()) {
    for (const SceneObject& object : sample.objects) {
      if (sample.prompt.empty() && list != prompt.npos &&
          prompt.find(object.desc, list) == prompt.npos)
        lacking.insert(object.desc);
    }
  }
  if (lacking.empty()) return "";
  return fmt::format(
      "user_prompt is that of the checkpoint, and its list of classes lacks {}: "
      "correct the list",
      first_few({lacking.begin(), lacking.end()}));
}

}  // namespace rematch
