#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/terminal_text.h"
#include "import/directory_format.h"
#include "import/foreign.h"
#include "import/image_files.h"

namespace rematch {
namespace {

/// Reads an outline of one ring with at least three vertices; empty for others.
std::vector<std::array<double, 2>> read_ring(const Json& segmentation) {
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

/// Reads the outline if `wanted`; counts masks and outlines that only a box can represent.
std::vector<std::array<double, 2>> read_outline(const Json* segmentation, bool wanted,
                                                ForeignSet& set) {
  if (!wanted || segmentation == nullptr || segmentation->empty()) return {};
  if (segmentation->is_object()) {
    ++set.notes["masks replaced by their boxes"];
    return {};
  }
  std::vector<std::array<double, 2>> ring = read_ring(*segmentation);
  if (ring.empty()) ++set.notes["outlines of several rings replaced by their boxes"];
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
  std::set<std::string> files;
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
    if (!files.insert(image.text("file_name")).second)
      image.fail("file_name", "another image has this file: give both the same id");
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
          .ring = read_outline(annotation.find("segmentation"), polygons, set)};
}

/// True for a crowd, a region of many objects. Files without crowds have 0, "0", false, null or no
/// such field.
bool is_crowd(JsonFields& annotation) {
  const Json* flag = annotation.find("iscrowd");
  if (flag == nullptr || flag->is_null() || *flag == 0 || *flag == false || *flag == "0")
    return false;
  if (*flag == 1 || *flag == true || *flag == "1") return true;
  annotation.fail("iscrowd", "expected 0 or 1");
}

void read_annotations(const Json& annotations, const std::map<int64_t, std::string>& names,
                      const JsonOrigin& origin, bool polygons, ForeignSet& set,
                      std::map<int64_t, ForeignImage>& images) {
  for (size_t i = 0; i < annotations.size(); ++i) {
    JsonFields one(annotations[i], origin, fmt::format("annotations[{}]", i));
    const auto image = images.find(one.integer("image_id"));
    if (image == images.end()) one.fail("image_id", "no entry of \"images\" has this id");
    if (is_crowd(one)) {
      ++set.notes["left out: crowds"];
      image->second.lost_objects = true;
      continue;
    }
    const auto name = names.find(one.integer("category_id"));
    if (name == names.end()) one.fail("category_id", "no entry of \"categories\" has this id");
    image->second.objects.push_back(read_object(one, name->second, polygons, set));
  }
}

/// @throws UserError (data) for a file with normalized boxes: no corner is above 1
void check_unit(const std::map<int64_t, ForeignImage>& images, const std::string& path) {
  int64_t num_boxes = 0;
  double largest = 0;
  for (const auto& [id, image] : images) {
    for (const ForeignObject& object : image.objects) {
      ++num_boxes;
      largest = std::max({largest, object.x0, object.y0, object.x1, object.y1});
    }
  }
  if (num_boxes == 0 || largest <= 0 || largest > 1) return;
  throw UserError(
      ErrorKind::kData,
      {.error = "the boxes are normalized (0 to 1), not in pixels",
       .where = path,
       .what = fmt::format("no corner of {} exceeds 1", counted(num_boxes, "box", "boxes")),
       .fix = "multiply them by the width and height of their images; nothing has been written"});
}

/// Refuses JSON of labelMe (one file per image) and Label Studio (a list of tasks).
void refuse_other_json(const Json& document, const std::string& path) {
  const auto refuse = [&](const std::string& format, const std::string& fix) {
    throw UserError(ErrorKind::kData, {.error = "this is not a COCO annotation file",
                                       .where = path,
                                       .what = "it is " + format,
                                       .fix = fix});
  };
  if (document.contains("shapes") && document.contains("imagePath")) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    refuse("a labelMe annotation of one image",
           fmt::format("rematch data from-labelme {} --out DIR",
                       shell_word(folder.empty() ? "." : folder)));
  }
  if (document.is_array() && !document.empty() && document[0].contains("annotations"))
    refuse("a list of tasks in Label Studio's JSON format", "export it again in COCO format");
}

void read_coco_file(const std::string& path, const ImportOptions& options, ForeignSet& set) {
  const JsonOrigin origin{
      .path = path,
      .error = "this is not a COCO annotation file",
      .fix =
          "give the JSON with \"images\", \"annotations\" and \"categories\" (instances_….json)"};
  const Json document = parse_document(read_file(path), origin);
  refuse_other_json(document, path);
  JsonFields fields(document, origin);
  const JsonOrigin entry{.path = path,
                         .error = "an entry of this COCO file is invalid",
                         .fix = "correct or remove that entry"};
  const std::map<int64_t, std::string> names = read_categories(fields.list("categories"), entry);
  std::map<int64_t, ForeignImage> images =
      read_images(fields.list("images"), options.image_directory(path), entry);

  read_annotations(fields.list("annotations"), names, entry, options.polygons, set, images);
  check_unit(images, path);
  auto& split = set.splits[options.split_name(path)];
  for (auto& [id, image] : images) split.push_back(std::move(image));
}

}  // namespace

ForeignSet read_coco_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& source : sources) {
    if (!std::filesystem::is_directory(source)) {
      paths.push_back(source);
      continue;
    }
    const auto splits = list_annotations(source, ".json", "");
    if (splits.empty())
      throw UserError(
          ErrorKind::kData,
          {.error = "the directory has no COCO annotations",
           .where = source,
           .what = "there are no JSON files in it or in folders train, valid and test",
           .fix = import_fix(source, "from-coco", "give the JSON files (instances_….json)")});
    for (const auto& [split, files] : splits) {
      for (const std::filesystem::path& file : files) paths.push_back(file.string());
    }
  }
  check_one_file_per_split(paths, options);
  ForeignSet set{.splits = {}, .notes = {}, .sources = paths};
  for (const std::string& path : paths) read_coco_file(path, options, set);
  return set;
}

}  // namespace rematch
