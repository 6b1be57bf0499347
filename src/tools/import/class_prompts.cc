#include "tools/import/write_steps.h"

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

using Names = std::set<std::string>;

/// The names of objects, as records have them.
Names shown_classes(const ForeignImage& image, const std::string& label) {
  Names shown;
  for (const ForeignObject& object : image.objects)
    shown.insert(python_strip(object.desc.empty() ? label : object.desc));
  shown.erase("");
  return shown;
}

/// The listed names of a set, and after them others that occur, each once. A listed name without
/// objects, such as "Background", is a class only if the user gives it.
Strings all_classes(const ForeignSet& set) {
  Strings classes;
  Names others, known{""};
  for (const auto& [split, images] : set.splits) {
    for (const ForeignImage& image : images) others.merge(shown_classes(image, set.options.label));
  }
  for (const std::string& listed : set.classes) {
    const std::string name = python_strip(listed);
    if (!set.options.names.empty() || others.contains(name)) classes.push_back(name);
  }
  classes.insert(classes.end(), others.begin(), others.end());
  std::erase_if(classes, [&](const std::string& name) { return !known.insert(name).second; });
  return classes;
}

/// The classes that an image certainly does not show.
Strings absent_classes(const ForeignImage& image, Strings classes, Names shown) {
  for (const std::string& name : image.doubtful) shown.insert(python_strip(name));
  if (!image.lost.empty() || image.is_partial || shown.contains("")) return {};
  std::erase_if(classes, [&](const std::string& name) { return shown.contains(name); });
  return classes;
}

/// A whole number whose mean over many keys is `value`.
size_t round_at_random(double value, uint64_t key) {
  const double whole = std::floor(value);
  return static_cast<size_t>(whole) + (random_uniform(key, 0) < value - whole ? 1 : 0);
}

}  // namespace

void add_class_prompts(ForeignSet& set) {
  const ImportOptions& options = set.options;
  const Strings classes = all_classes(set);
  double num_shown = 0, num_images = 0;
  for (const auto& [split, images] : set.splits) {
    for (const ForeignImage& image : images) {
      const size_t count = shown_classes(image, options.label).size();
      num_shown += static_cast<double>(count);
      num_images += count > 0;
    }
  }
  const double usual = std::max(1.0, num_shown / std::max(1.0, num_images));
  const double per_shown = options.negatives / (1 - options.negatives);
  for (auto& [split, images] : set.splits) {
    for (ForeignImage& image : images) {
      Names listed = shown_classes(image, options.label);
      const Strings absent = absent_classes(image, classes, listed);
      const uint64_t key =
          random_key(kNegativesStream, std::stoull(content_hash_of(image.name), nullptr, 16));
      const double wanted = listed.empty() ? usual : static_cast<double>(listed.size()) * per_shown;
      const size_t count = std::min(round_at_random(wanted, key), absent.size());
      const std::vector<int64_t> order = random_permutation(key, std::ssize(absent));
      for (size_t i = 0; i < count; ++i) listed.insert(absent[order[i]]);
      Strings names = classes;
      std::erase_if(names, [&](const std::string& name) { return !listed.contains(name); });
      if (names.empty() && image.lost.empty() && !image.has_crowds)
        image.leave_out("an image without objects, and without a class that is surely absent",
                        image.where);
      image.prompt = fmt::format(kPrompt, join(names, ", "));
    }
  }
}

}  // namespace rematch
