#include "learn/data/doubts.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/terminal_text.h"
#include "learn/data/file_set.h"
#include "learn/data/units.h"

namespace rematch {
namespace {

std::string flat_shapes_warning(const std::string& path, std::span<const Sample> samples) {
  int64_t num_flat = 0;
  for (const Sample& sample : samples)
    num_flat += std::ranges::count_if(
        sample.objects, [](const SceneObject& object) { return has_no_area(object.geometry); });
  if (num_flat == 0) return "";
  return fmt::format(
      "{}: {} without area, correct only for thin objects: `rematch data check {}` lists them",
      path, counted(num_flat, "box or polygon", "boxes and polygons"), shell_word(path));
}

std::string pixels_warning(const std::string& path, std::span<const Sample> samples) {
  UnitEvidence evidence;
  for (const Sample& sample : samples) {
    std::vector<Numbers> geometries;
    for (const SceneObject& object : sample.objects)
      geometries.emplace_back(object.geometry.bins.begin(), object.geometry.bins.end());
    evidence.add(geometries, sample.width_px, sample.height_px);
  }
  if (!look_like_pixels(evidence)) return "";
  return fmt::format(
      "{}: COORDINATES LOOK LIKE PIXELS: in {} images no coordinate exceeds its image's side, but "
      "they are read as bins 0..{}; if they are pixels, `rematch data check {} --fix OUT --unit "
      "pixels` converts them",
      path, evidence.num_images, kNumBins - 1, shell_word(path));
}

}  // namespace

bool has_no_area(const Geometry& geometry) {
  const std::vector<int>& bins = geometry.bins;
  if (geometry.kind == GeometryKind::kBbox2d) return bins[0] == bins[2] || bins[1] == bins[3];
  int64_t doubled_area = 0;
  for (size_t i = 0; i + 1 < bins.size(); i += 2) {
    const size_t next = (i + 2) % bins.size();
    doubled_area += int64_t{bins[i]} * bins[next + 1] - int64_t{bins[next]} * bins[i + 1];
  }
  return doubled_area == 0;
}

bool are_same_objects(Objects a, Objects b) {
  for (Objects* objects : {&a, &b})
    std::ranges::sort(*objects, {}, [](const SceneObject& object) {
      return std::tie(object.desc, object.geometry.bins);
    });
  return a == b;
}

std::string SplitImages::text() const {
  return fmt::format(
      "{} in {} records with different objects: each record teaches that the objects of the others "
      "are not there",
      num_images == 1 ? "1 image is" : fmt::format("{} images are", num_images), num_records);
}

SplitImages find_split_images(std::span<const Sample> samples) {
  struct Image {
    const Sample* first = nullptr;
    int64_t num_records = 0;
    bool differs = false;
  };
  std::map<std::pair<FileId, std::string_view>, Image> images;  // by file and prompt
  for (const Sample& sample : samples) {
    if (sample.image_paths.size() != 1) continue;
    Image& image = images[{file_id(sample.image_paths.front()), sample.prompt}];
    ++image.num_records;
    if (image.first == nullptr) {
      image.first = &sample;
    } else {
      image.differs = image.differs || !are_same_objects(image.first->objects, sample.objects);
    }
  }
  SplitImages split;
  for (const auto& [key, image] : images) {
    split.num_images += image.differs;
    split.num_records += image.differs ? image.num_records : 0;
  }
  return split;
}

Strings content_warnings(const std::string& path, std::span<const Sample> samples) {
  Strings texts = {flat_shapes_warning(path, samples), pixels_warning(path, samples)};
  if (const SplitImages split = find_split_images(samples); split.num_images > 0)
    texts.push_back(fmt::format("{}: {}; `rematch data check {} --fix OUT` joins them", path,
                                split.text(), shell_word(path)));
  std::erase(texts, "");
  return texts;
}

}  // namespace rematch
