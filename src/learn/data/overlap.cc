#include "learn/data/overlap.h"

#include <fmt/core.h>

#include <set>

#include "base/first_few.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/file_set.h"

namespace rematch {
namespace {

constexpr int64_t kFewObjects = 50;  // too few to tell free text from classes

}  // namespace

Strings overlap_warnings(const Dataset& train, const Dataset& val) {
  Strings warnings, shared;  // images of both, in val's order
  FileSet trained_images;
  std::set<std::string> trained;
  int64_t num_images = 0, num_objects = 0;
  for (const Sample& sample : train.samples()) {
    for (const std::string& path : sample.image_paths) trained_images.insert(path);
    num_objects += sample.objects.size();
    for (const SceneObject& object : sample.objects) trained.insert(normalize_label(object.desc));
  }
  for (const Sample& sample : val.samples()) {
    num_images += sample.image_paths.size();
    for (const std::string& path : sample.image_paths) {
      if (trained_images.contains(path)) shared.push_back(path);
    }
  }
  if (!shared.empty()) {
    warnings.push_back(fmt::format(
        "{} of {} in {} {} also in {} ({}): scores on training images say nothing about new ones",
        shared.size(), counted(num_images, "image"), val.path(), shared.size() == 1 ? "is" : "are",
        train.path(), printable(first_few(shared))));
  }
  const bool is_free_text = num_objects >= kFewObjects && 2 * std::ssize(trained) > num_objects;
  if (is_free_text) return warnings;
  std::set<std::string> classes;
  Strings unknown;
  for (const Sample& sample : val.samples()) {
    for (const SceneObject& object : sample.objects) {
      const std::string label = normalize_label(object.desc);
      if (classes.insert(label).second && !trained.contains(label)) unknown.push_back(object.desc);
    }
  }
  if (!unknown.empty()) {
    warnings.push_back(fmt::format("{} of {} in {} never {} in {}: {}", unknown.size(),
                                   counted(std::ssize(classes), "class", "classes"), val.path(),
                                   unknown.size() == 1 ? "occurs" : "occur", train.path(),
                                   printable(first_few(unknown))));
  }
  return warnings;
}

}  // namespace rematch
