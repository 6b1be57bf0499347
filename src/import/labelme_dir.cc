#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "import/directory_format.h"
#include "import/foreign.h"
#include "import/image_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

std::vector<std::array<double, 2>> read_points(JsonFields& shape) {
  std::vector<std::array<double, 2>> points;
  for (const Json& point : shape.list("points")) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number())
      shape.fail("points", "expected [[x, y], …] in pixels");
    points.push_back({point[0].get<double>(), point[1].get<double>()});
  }
  return points;
}

/// The box around a circle. @param points  its centre and a point on it
ForeignObject circle_box(const std::vector<std::array<double, 2>>& points) {
  const auto& [x, y] = points[0];
  const double radius = std::hypot(points[1][0] - x, points[1][1] - y);
  return {.x0 = x - radius, .y0 = y - radius, .x1 = x + radius, .y1 = y + radius, .ring = {}};
}

/// Adds the object of a shape, or counts the shape as left out.
void add_shape(JsonFields& shape, bool polygons, ForeignImage& image, ForeignSet& set) {
  const std::string type = shape.text_or("shape_type", "polygon");
  const std::vector<std::array<double, 2>> points = read_points(shape);
  const bool is_outline = type == "polygon" || type == "oriented_rectangle";
  const bool is_two_points = type == "rectangle" || type == "mask" || type == "circle";
  if (!is_outline && !is_two_points) {
    ++set.notes[fmt::format("left out: shapes of type \"{}\"", type)];
    image.lost_objects = true;
    return;
  }
  if (is_outline ? points.size() < 3 : points.size() != 2)
    shape.fail("points", fmt::format("a {} of {} points", type, points.size()));
  ForeignObject object = type == "circle" ? circle_box(points) : box_around(points);
  if (is_outline && polygons) object.ring = points;
  if (type == "mask") ++set.notes["masks replaced by their boxes"];
  if (type == "circle") ++set.notes["circles replaced by their boxes"];
  object.desc = shape.text("label");
  image.objects.push_back(std::move(object));
}

ForeignImage read_annotation(const fs::path& path, const fs::path& images_dir, bool polygons,
                             ForeignSet& set) {
  const JsonOrigin origin{
      .path = path.string(),
      .error = "this is not a labelMe annotation",
      .fix =
          "give a directory in which each JSON has \"imagePath\" and \"shapes\"; move others away",
      .null_is_absent = true};
  const Json document = parse_document(read_file(path.string()), origin);
  JsonFields fields(document, origin);
  const std::string name = fields.text("imagePath");
  ForeignImage image{.path = find_annotated_image(path, images_dir, name).string(),
                     .width_px = fields.integer_or<int>("imageWidth", 0, 0),
                     .height_px = fields.integer_or<int>("imageHeight", 0, 0),
                     .objects = {}};
  const Json& shapes = fields.list("shapes");
  for (size_t i = 0; i < shapes.size(); ++i) {
    JsonFields shape(shapes[i], origin, fmt::format("shapes[{}]", i));
    add_shape(shape, polygons, image, set);
  }
  return image;
}

}  // namespace

ForeignObject box_around(const std::vector<std::array<double, 2>>& points) {
  ForeignObject object{
      .x0 = points[0][0], .y0 = points[0][1], .x1 = points[0][0], .y1 = points[0][1], .ring = {}};
  for (const auto& [x, y] : points) {
    object.x0 = std::min(object.x0, x);
    object.y0 = std::min(object.y0, y);
    object.x1 = std::max(object.x1, x);
    object.y1 = std::max(object.y1, y);
  }
  return object;
}

ForeignSet read_labelme_dir(const std::string& directory, const ImportOptions& options) {
  require_directory(directory);
  const auto splits = list_annotations(directory, ".json", options.split);
  if (splits.empty()) {
    throw UserError(ErrorKind::kData,
                    {.error = "this is not a directory of labelMe annotations",
                     .where = directory,
                     .what = "there are no JSON files in it or in folders train, valid and test",
                     .fix = import_fix(directory, "from-labelme",
                                       "give the directory with one JSON per image")});
  }
  ForeignSet set;
  for (const auto& [split, files] : splits) {
    for (const fs::path& file : files) {
      set.sources.push_back(file.string());
      const fs::path images_dir =
          options.images_dir.empty() ? file.parent_path() : fs::path(options.images_dir);
      set.splits[split].push_back(read_annotation(file, images_dir, options.polygons, set));
    }
  }
  return set;
}

}  // namespace rematch
