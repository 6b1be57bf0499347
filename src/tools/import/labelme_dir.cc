#include <fmt/core.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/out_of_resources.h"
#include "learn/data/image_files.h"
#include "tools/import/foreign.h"
#include "tools/import/forms.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kCommand = "from-labelme";

/// The objects of groups, by name and group_id.
using Groups = std::map<std::pair<std::string, std::string>, size_t>;

/// Adds an object, or joins it to that of its group: shapes of one name and group_id are the parts
/// of one object.
void add_object(ForeignObject object, const Json* group_id, Groups& groups, ForeignImage& image,
                Ledger& ledger) {
  const std::pair group(object.desc, group_id == nullptr ? "" : group_id->dump());
  const auto known = groups.find(group);
  if (known == groups.end()) {
    if (group_id != nullptr) groups[group] = image.objects.size();
    image.objects.push_back(std::move(object));
    return;
  }
  ForeignObject& whole = image.objects[known->second];
  whole = box_around(
      {{whole.x0, whole.y0}, {whole.x1, whole.y1}, {object.x0, object.y0}, {object.x1, object.y1}});
  whole.desc = object.desc;
  ledger.note("shapes joined to the object of their group_id, as its box");
}

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
    object = is_outline ? make_outline(points, polygons, "outlines", ledger) : box_around(points);
  }
  if (type == "mask" || type == "circle") ledger.note(type + "s replaced by their boxes");
  if (label != nullptr)
    object.desc = label->is_string() ? label->get<std::string>() : label->dump();
  add_object(std::move(object), find_member(shape, "group_id"), groups, image, ledger);
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
