#include "learn/augment/absent_classes.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "learn/data/class_list.h"

namespace rematch {
namespace {

constexpr uint64_t kOrderStream = 1, kClassStream = 2;  // of a sample's key

std::optional<ClassList> list_of(const Sample& sample) {
  if (!sample.classes) return std::nullopt;
  return find_class_list(sample.prompt, *sample.classes);
}

/// The names that neither the list nor an object of the sample's images has.
Strings addable_names(const Sample& sample, const ClassList& list) {
  std::set<std::string> used(sample.image_names.begin(), sample.image_names.end());
  for (const std::string& name : list.names) used.insert(lower_case(name));
  Strings names = sample.classes->all();
  std::erase_if(names, [&](const std::string& name) { return used.contains(lower_case(name)); });
  return names;
}

void shuffle(Strings& names, uint64_t key) {
  const Strings before = names;
  const std::vector<int64_t> order = random_permutation(key, std::ssize(names));
  for (size_t i = 0; i < names.size(); ++i) names[i] = before[order[i]];
}

}  // namespace

void draw_absent_classes(Sample& sample, const AugmentSettings& settings, uint64_t key) {
  std::optional<ClassList> list = list_of(sample);
  if (settings.absent_share <= 0 || !list) return;
  if (random_uniform(key, 0) < settings.absent_share) {
    Strings& drawn = sample.drawn_names = addable_names(sample, *list);
    shuffle(drawn, random_key(key, kClassStream));
    const size_t count = 1 + random_below(key, 1, settings.absent_most);
    drawn.resize(std::min(count, drawn.size()));
  }
  Strings names = list->names;
  names.insert(names.end(), sample.drawn_names.begin(), sample.drawn_names.end());
  shuffle(names, random_key(key, kOrderStream));
  sample.prompt = with_names(sample.prompt, *list, names);
}

Sample with_longest_prompt(Sample sample, const AugmentSettings& settings) {
  const std::optional<ClassList> list = list_of(sample);
  if (settings.absent_share <= 0 || !list) return sample;
  Strings names = addable_names(sample, *list);
  std::ranges::stable_sort(names, std::greater(), [](const auto& name) { return name.size(); });
  names.resize(std::min(names.size(), static_cast<size_t>(settings.absent_most)));
  names.insert(names.end(), list->names.begin(), list->names.end());
  sample.prompt = with_names(sample.prompt, *list, names);
  return sample;
}

std::pair<int64_t, int64_t> count_listing(const std::vector<Sample>& samples) {
  std::pair<int64_t, int64_t> counts;
  for (const Sample& sample : samples) {
    const std::optional<ClassList> list = list_of(sample);
    counts.first += list.has_value();
    counts.second += list && !addable_names(sample, *list).empty();
  }
  return counts;
}

}  // namespace rematch
