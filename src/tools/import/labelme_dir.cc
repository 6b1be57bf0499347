#include <fmt/core.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr DirectoryFormat kDirectory = {
    .command = "from-labelme",
    .ending = ".json",
    .error = "this is not a directory of labelMe annotations",
    .what = "there are no JSON files in it or in folders train, valid and test",
    .fix = "give the directory with one JSON per image"};

/// The box around a circle.
/// @param points  its centre and a point on it
ForeignObject circle_box(const Outline& points) {
  const auto& [x, y] = points[0];
  const double radius = std::hypot(points[1][0] - x, points[1][1] - y);
  return {.x0 = x - radius, .y0 = y - radius, .x1 = x + radius, .y1 = y + radius};
}

/// The objects of groups, by name and group_id.
using Groups = std::map<std::pair<std::string, std::string>, size_t>;

/// Adds an object, or joins it to that of its group: shapes of one name and group_id are the parts
/// of one object.
void add_object(ForeignObject object, const Json* group_id, Groups& groups, ForeignImage& image,
                Ledger& ledger) {
  if (group_id != nullptr && !group_id->is_null()) {
    const auto [known, is_new] =
        groups.try_emplace({object.desc, group_id->dump()}, image.objects.size());
    if (!is_new) {
      ForeignObject& whole = image.objects[known->second];
      whole = box_around({{whole.x0, whole.y0},
                          {whole.x1, whole.y1},
                          {object.x0, object.y0},
                          {object.x1, object.y1}});
      whole.desc = object.desc;
      return ledger.note("shapes joined to the object of their group_id, as its box");
    }
  }
  image.objects.push_back(std::move(object));
}

/// Adds the object of a shape.
/// @return the reason why not, or ""
std::string read_shape(const Json& shape, bool polygons, Groups& groups, ForeignImage& image,
                       Ledger& ledger) {
  const Json* label = find_member(shape, "label");
  if (label != nullptr && *label == "__ignore__") {
    image.skip_region(ledger);
    return "";
  }
  const Json* points_of = find_member(shape, "points");
  if (points_of == nullptr) return "a shape that cannot be read";
  const Json* named = find_member(shape, "shape_type");
  const std::string type = named == nullptr     ? "polygon"
                           : named->is_string() ? named->get<std::string>()
                                                : "";
  const Outline points = read_points(*points_of);
  const bool is_outline = type == "polygon" || type == "oriented_rectangle" || type == "rotation" ||
                          type == "quadrilateral";  // X-AnyLabeling
  const bool is_two_points = type == "rectangle" || type == "mask" || type == "circle";
  if (!is_outline && !is_two_points) return fmt::format("a shape of type {}", show_json(type));
  if (is_outline            ? points.size() < 3
      : type == "rectangle" ? points.size() != 2 && points.size() != 4
                            : points.size() != 2)
    return "a shape that cannot be read";
  ForeignObject object = type == "circle" ? circle_box(points)
                         : is_outline     ? make_outline(points, polygons, "outlines", ledger)
                                          : box_around(points);
  if (type == "mask" || type == "circle") ledger.note(type + "s replaced by their boxes");
  if (label != nullptr)
    object.desc = label->is_string() ? label->get<std::string>() : label->dump();
  add_object(std::move(object), find_member(shape, "group_id"), groups, image, ledger);
  return "";
}

/// @return false for a file of another format
bool read_annotation(ForeignImage& image, bool polygons, Ledger& ledger) {
  Json document;
  try {
    document = read_json_file(image.where);
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    image.leave_out("a JSON that cannot be read",
                    image.where + ": " + error.problems().front().what);
    return false;
  }
  const Json* shapes = find_member(document, "shapes");
  if (shapes == nullptr || !shapes->is_array()) {
    image.leave_out("a JSON that is not labelMe's", image.where + ": it has no list \"shapes\"");
    return false;
  }
  if (const Json* name = find_member(document, "imagePath"); name != nullptr && name->is_string())
    image.name = name->get<std::string>();
  image.width_px = read_side_px(find_member(document, "imageWidth"));
  image.height_px = read_side_px(find_member(document, "imageHeight"));
  Groups groups;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const std::string reason = read_shape((*shapes)[i], polygons, groups, image, ledger);
    if (!reason.empty()) image.lose(reason, fmt::format("{}: shapes[{}]", image.where, i));
  }
  return true;
}

}  // namespace

ForeignSet read_labelme_dir(const std::string& directory, const ImportOptions& options) {
  require_directory(directory, kDirectory.command);
  ForeignSet set;
  bool has_shapes = false;
  const SplitFiles splits = find_annotations(directory, kDirectory, options.split);
  lose_deeper_files(splits, "\"shapes\"", set.ledger);
  for (const auto& [split, files] : splits) {
    for (const std::filesystem::path& file : files) {
      set.sources.push_back(file.string());
      ForeignImage& image = set.splits[split].emplace_back(image_of_file(file));
      has_shapes = read_annotation(image, options.polygons, set.ledger) || has_shapes;
    }
  }
  if (has_shapes) return set;
  const std::string& first = set.sources.front();
  refuse_other_format(first, read_file(first), kDirectory.command, kDirectory.error);
  throw UserError(ErrorKind::kData, {.error = kDirectory.error,
                                     .where = first,
                                     .what = set.splits.begin()->second.front().defect->place,
                                     .fix = "give a directory in which each JSON has \"imagePath\" "
                                            "and \"shapes\"; move others away"});
}

}  // namespace rematch
