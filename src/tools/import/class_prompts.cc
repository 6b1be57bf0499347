#include "tools/import/class_prompts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/content_key.h"
#include "base/random.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kPrompt =
    "Locate every object of these categories in this image: {}. Report the label and the bbox "
    "coordinates of each in JSON format.";
constexpr uint64_t kNegativesStream = 0x6E65676174697665ULL;  // separate from other random streams

/// Names that occur in a set and are not listed, after the listed ones.
std::vector<std::string> all_classes(const ForeignSet& set) {
  std::vector<std::string> classes = set.classes;
  std::set<std::string> known(classes.begin(), classes.end());
  std::set<std::string> others;
  for (const auto& [split, images] : set.splits) {
    for (const ForeignImage& image : images) {
      for (const ForeignObject& object : image.objects) {
        if (!object.desc.empty() && !known.contains(object.desc)) others.insert(object.desc);
      }
    }
  }
  classes.insert(classes.end(), others.begin(), others.end());
  return classes;
}

std::set<std::string> shown_classes(const ForeignImage& image) {
  std::set<std::string> shown;
  for (const ForeignObject& object : image.objects) {
    if (!object.desc.empty()) shown.insert(object.desc);
  }
  return shown;
}

/// A whole number whose mean over many keys is `value`.
size_t round_at_random(double value, uint64_t key) {
  const double whole = std::floor(value);
  return static_cast<size_t>(whole) + (random_uniform(key, 0) < value - whole ? 1 : 0);
}

}  // namespace

void add_class_prompts(ForeignSet& set, double negatives) {
  const std::vector<std::string> classes = all_classes(set);
  double num_shown = 0, num_images = 0;
  for (const auto& [split, images] : set.splits) {
    for (const ForeignImage& image : images) {
      const size_t count = shown_classes(image).size();
      num_shown += static_cast<double>(count);
      num_images += count > 0;
    }
  }
  const double usual = num_images > 0 ? num_shown / num_images : 1;
  for (auto& [split, images] : set.splits) {
    for (ForeignImage& image : images) {
      const std::set<std::string> shown = shown_classes(image);
      std::vector<std::string> absent;
      for (const std::string& name : classes) {
        if (!shown.contains(name)) absent.push_back(name);
      }
      const uint64_t key =
          random_key({kNegativesStream, std::stoull(content_hash_of(image.name), nullptr, 16)});
      const double wanted = shown.empty()
                                ? std::max(1.0, usual)
                                : static_cast<double>(shown.size()) * negatives / (1 - negatives);
      const size_t count = std::min(round_at_random(wanted, key), absent.size());
      std::set<std::string> listed = shown;
      const std::vector<int64_t> order = random_permutation(key, std::ssize(absent));
      for (size_t i = 0; i < count; ++i) listed.insert(absent[static_cast<size_t>(order[i])]);
      std::vector<std::string> names;
      for (const std::string& name : classes) {
        if (listed.contains(name)) names.push_back(name);
      }
      image.prompt = fmt::format(kPrompt, join(names, ", "));
    }
  }
}

}  // namespace rematch
