#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {.command = "from-labelme", .ending = ".json", .is_per_image = true};

/// Names and group_ids of shapes: the parts of one object share both.
using Groups = std::set<std::pair<std::string, std::string>>;

ForeignEntry read_shape(const Json& shape, std::string place, Groups& groups, Ledger& ledger) {
  constexpr const char* kOutlines[] = {"polygon", "oriented_rectangle", "rotation",
                                       "quadrilateral"};  // X-AnyLabeling
  ForeignEntry entry{.place = std::move(place)};
  const Json &label = member(shape, {"label"}), &group = member(shape, {"group_id"});
  if (!label.is_null()) entry.name = label.is_string() ? label.get<std::string>() : label.dump();
  if (*entry.name == "__ignore__") {
    entry.skipped = "regions marked to be ignored, left out";
    entry.name = "";
    return entry;
  }
  const bool has_type = !member(shape, {"shape_type"}).is_null();
  const std::string type = has_type ? text_member(shape, {"shape_type"}) : "polygon";
  const Outline points = read_points(member(shape, {"points"}));
  if (is_among(type, kOutlines)) {
    entry.rings = {points};
  } else if (type != "rectangle" && type != "mask") {
    entry.reason = fmt::format("a shape of type {}", show_json(type));
  } else if (points.size() == 2 || (type == "rectangle" && points.size() == 4)) {
    entry.box = extent_of(points);
  }
  read_marks(shape, entry, ledger);
  if (entry.box && type != "rectangle") ledger.note("masks replaced by their boxes");
  if (!group.is_null() && !groups.insert({*entry.name, group.dump()}).second)
    entry.reason = "a part of an object (group_id), which is to be one box";
  return entry;
}

void read_annotation(const std::string& path, ForeignSet& set, ForeignImages& images) {
  const Json document = parse_record(read_file(path));
  const Json& shapes = member(document, {"shapes"});
  if (!shapes.is_array()) throw LeftOut{reason::kDamagedRecord, "it has no list \"shapes\""};
  ForeignImage& image = images.emplace_back(image_of_file(path));
  if (const std::string name = text_member(document, {"imagePath"}); !name.empty())
    image.name = name;
  image.has_pixels = !text_member(document, {"imageData"}).empty();
  image.state_size(member(document, {"imageWidth"}), member(document, {"imageHeight"}));
  Groups groups;
  for (size_t i = 0; i < shapes.size(); ++i)
    image.add(read_shape(shapes[i], fmt::format("{}: shapes[{}]", path, i), groups, set.ledger),
              set);
}

}  // namespace

ForeignSet read_labelme_dir(const Strings& directory, const ImportOptions& options) {
  return read_sources(directory, kForm, {.options = options}, read_annotation);
}

}  // namespace rematch
