#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "import/foreign.h"

namespace rematch {
namespace {

/// One ring of at least three vertices, or none.
std::vector<std::array<double, 2>> ring_of(const Json& segmentation) {
  std::vector<std::array<double, 2>> ring;
  if (!segmentation.is_array() || segmentation.size() != 1 || !segmentation[0].is_array())
    return ring;
  const Json& flat = segmentation[0];
  if (flat.size() < 6 || flat.size() % 2 != 0) return ring;
  for (size_t i = 0; i < flat.size(); i += 2) {
    if (!flat[i].is_number() || !flat[i + 1].is_number()) return {};
    ring.push_back({flat[i].get<double>(), flat[i + 1].get<double>()});
  }
  return ring;
}

/// Counts what is not a box and returns the outline that is wanted.
std::vector<std::array<double, 2>> outline_of(const Json* segmentation, bool wanted,
                                              ForeignSet& set) {
  if (!wanted || segmentation == nullptr || segmentation->empty()) return {};
  if (segmentation->is_object()) {
    ++set.notes["masks taken as their boxes"];
    return {};
  }
  std::vector<std::array<double, 2>> ring = ring_of(*segmentation);
  if (ring.empty()) ++set.notes["outlines of several rings taken as their boxes"];
  return ring;
}

std::map<int64_t, std::string> read_categories(const Json& categories, const JsonOrigin& origin) {
  std::map<int64_t, std::string> names;
  for (size_t i = 0; i < categories.size(); ++i) {
    JsonFields category(categories[i], origin, fmt::format("categories[{}]", i));
    const std::string name = category.text("name");
    if (names.try_emplace(category.integer("id"), name).first->second != name)
      category.fail("id", "another category has this id");
  }
  return names;
}

std::map<int64_t, ForeignImage> read_images(const Json& listed, const std::string& directory,
                                            const JsonOrigin& origin) {
  std::map<int64_t, ForeignImage> images;
  for (size_t i = 0; i < listed.size(); ++i) {
    JsonFields image(listed[i], origin, fmt::format("images[{}]", i));
    const bool is_new =
        images
            .try_emplace(image.integer("id"),
                         ForeignImage{.path = join_path(directory, image.text("file_name")),
                                      .width_px = image.integer_or<int>("width", 0, 0),
                                      .height_px = image.integer_or<int>("height", 0, 0),
                                      .objects = {}})
            .second;
    if (!is_new) image.fail("id", "another image has this id");
  }
  return images;
}

ForeignObject read_object(JsonFields& annotation, const std::string& category, bool polygons,
                          ForeignSet& set) {
  const Json& box = annotation.list("bbox");
  if (box.size() != 4 ||
      !std::all_of(box.begin(), box.end(), [](const Json& side) { return side.is_number(); }))
    annotation.fail("bbox", "expected [left, top, width, height] in pixels");
  const double x = box[0].get<double>(), y = box[1].get<double>();
  return {.desc = category,
          .x0 = x,
          .y0 = y,
          .x1 = x + box[2].get<double>(),
          .y1 = y + box[3].get<double>(),
          .ring = outline_of(annotation.find("segmentation"), polygons, set)};
}

void read_file_into(const std::string& path, const ImportOptions& options, ForeignSet& set) {
  const JsonOrigin origin{
      .path = path,
      .error = "this is not a COCO annotation file",
      .fix =
          "give the JSON with \"images\", \"annotations\" and \"categories\" (instances_….json)"};
  const Json document = parse_document(read_file(path), origin);
  JsonFields fields(document, origin);
  const std::map<int64_t, std::string> names = read_categories(fields.list("categories"), origin);
  const std::string directory = options.images_dir.empty()
                                    ? std::filesystem::path(path).parent_path().string()
                                    : options.images_dir;
  std::map<int64_t, ForeignImage> images = read_images(fields.list("images"), directory, origin);

  const Json& annotations = fields.list("annotations");
  for (size_t i = 0; i < annotations.size(); ++i) {
    JsonFields one(annotations[i], origin, fmt::format("annotations[{}]", i));
    if (const Json* crowd = one.find("iscrowd");
        crowd != nullptr && *crowd != 0 && *crowd != false) {
      ++set.notes["left out: crowds"];
      continue;
    }
    const auto image = images.find(one.integer("image_id"));
    const auto name = names.find(one.integer("category_id"));
    if (image == images.end()) one.fail("image_id", "no entry of \"images\" has this id");
    if (name == names.end()) one.fail("category_id", "no entry of \"categories\" has this id");
    image->second.objects.push_back(read_object(one, name->second, options.polygons, set));
  }
  auto& split = set.splits[options.split.empty() ? split_of_name(path) : options.split];
  for (auto& [id, image] : images) split.push_back(std::move(image));
}

}  // namespace

std::string split_of_name(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem().string();
  for (const char* name : {"train", "val", "test"}) {
    if (stem.find(name) != std::string::npos) return name;
  }
  return stem;
}

ForeignSet read_coco_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  ForeignSet set{.splits = {}, .notes = {}, .sources = paths};
  for (const std::string& path : paths) read_file_into(path, options, set);
  return set;
}

}  // namespace rematch
