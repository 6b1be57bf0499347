#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/out_of_resources.h"
#include "learn/data/image_files.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kCommand = "from-labelme";

/// Names and group_ids of shapes: the parts of one object share both.
using Groups = std::set<std::pair<std::string, std::string>>;

/// Adds the object of a shape.
/// @return the reason why not, or ""
std::string read_shape(const Json& shape, bool polygons, Groups& groups, ForeignImage& image,
                       Ledger& ledger) {
  constexpr const char* kOutlines[] = {"polygon", "oriented_rectangle", "rotation",
                                       "quadrilateral"};  // X-AnyLabeling
  constexpr const char* kTwoPoints[] = {"rectangle", "mask", "circle"};
  const Json* label = find_member(shape, "label");
  if (label != nullptr && *label == "__ignore__") {
    image.skip_region(ledger);
    return "";
  }
  const Json *points_of = find_member(shape, "points"), *named = find_member(shape, "shape_type");
  const std::string type = named == nullptr ? "polygon" : text_member(shape, {"shape_type"});
  const bool is_outline = is_among(type, kOutlines);
  if (!is_outline && !is_among(type, kTwoPoints))
    return fmt::format("a shape of type {}", show_json(type));
  const Outline points = points_of == nullptr ? Outline() : read_points(*points_of);
  if (is_outline ? points.size() < 3
                 : points.size() != 2 && (type != "rectangle" || points.size() != 4))
    return "a shape that cannot be read";
  ForeignObject object;
  if (type == "circle") {  // its centre and a point on it
    const auto& [x, y] = points[0];
    const double radius = std::hypot(points[1][0] - x, points[1][1] - y);
    object = box_around({{x - radius, y - radius}, {x + radius, y + radius}});
  } else {
    object = is_outline ? make_outline(points, polygons, ledger) : box_around(points);
  }
  if (type == "mask" || type == "circle") ledger.note(type + "s replaced by their boxes");
  if (label != nullptr)
    object.desc = label->is_string() ? label->get<std::string>() : label->dump();
  if (const Json* group = find_member(shape, "group_id");
      group != nullptr && !groups.insert({object.desc, group->dump()}).second)
    return "a part of an object (group_id), which is to be one box";
  image.objects.push_back(std::move(object));
  return "";
}

/// @return false for a file of another form
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
  if (const std::string name = text_member(document, {"imagePath"}); !name.empty())
    image.name = name;
  image.state_size(number_member(document, "imageWidth"), number_member(document, "imageHeight"));
  Groups groups;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const std::string reason = read_shape((*shapes)[i], polygons, groups, image, ledger);
    if (!reason.empty()) image.lose(reason, fmt::format("{}: shapes[{}]", image.where, i));
  }
  return true;
}

}  // namespace

ForeignSet read_labelme_dir(const std::string& directory, const ImportOptions& options) {
  ForeignSet set;
  bool has_shapes = false;
  for (const auto& [split, files] : find_annotations(directory, kCommand, ".json", options.split)) {
    for (const std::filesystem::path& file : files) {
      set.sources.push_back(file.string());
      ForeignImage& image = set.splits[split].emplace_back(image_of_file(file));
      has_shapes = read_annotation(image, options.polygons, set.ledger) || has_shapes;
    }
  }
  if (!has_shapes)
    refuse_source(kCommand, set.sources.front(), set.splits.begin()->second.front().defect->place);
  return set;
}

}  // namespace rematch
