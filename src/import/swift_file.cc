#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "import/foreign.h"

namespace rematch {
namespace {

constexpr double kNorm1000 = 1000;
constexpr double kMostShares = 2;  // beyond, a share of a side is surely none

/// What the coordinates of a record are: pixels, shares of the sides, or thousandths.
double divisor_of(JsonFields& objects) {
  const std::string type = objects.text_or("bbox_type", "real");
  if (type == "real") return 0;
  if (type == "norm1") return 1;
  if (type == "norm1000") return kNorm1000;
  objects.fail("bbox_type", "expected real, norm1 or norm1000");
}

/// The image of a record, or none where the record says nothing about boxes.
std::optional<ForeignImage> read_line(const std::string& line, const JsonOrigin& origin,
                                      const std::string& directory, ForeignSet& set) {
  const Json record = parse_document(line, origin);
  JsonFields fields(record, origin);
  const std::vector<std::string> images = fields.texts("images");
  if (images.size() != 1)
    fields.fail("images", fmt::format("expected one image, found {}", images.size()));
  ForeignImage image{.path = join_path(directory, images[0]), .objects = {}};
  JsonFields objects = fields.object_or_empty("objects");
  const std::vector<std::string> refs = objects.texts("ref");
  const double divisor = divisor_of(objects);
  image.is_relative = divisor > 0;
  const Json* boxes = objects.find("bbox");
  if (boxes == nullptr || boxes->is_null()) return std::nullopt;
  if (!boxes->is_array()) objects.fail("bbox", "expected a list of boxes");
  if (refs.size() != boxes->size() && refs.size() != 1)
    objects.fail("ref", fmt::format("{} names for {} boxes: expected as many, or one for all",
                                    refs.size(), boxes->size()));
  const double scale = divisor > 0 ? 1 / divisor : 1;
  for (size_t i = 0; i < boxes->size(); ++i) {
    const Json& box = (*boxes)[i];
    if (box.is_array() && box.size() == 2) {
      ++set.notes["left out: points"];
      continue;
    }
    std::array<double, 4> sides{};
    if (!box.is_array() || box.size() != 4)
      objects.fail("bbox", fmt::format("entry {} is not [x1, y1, x2, y2]", i));
    for (size_t k = 0; k < 4; ++k) {
      if (!box[k].is_number()) objects.fail("bbox", fmt::format("entry {} is not four numbers", i));
      sides[k] = box[k].get<double>() * scale;
      if (image.is_relative && !(std::abs(sides[k]) <= kMostShares))
        objects.fail(
            "bbox",
            fmt::format(
                "entry {} is far outside its image: are these pixels, \"bbox_type\": \"real\"?",
                i));
    }
    image.objects.push_back({.desc = refs.size() == 1 ? refs[0] : refs[i],
                             .x0 = sides[0],
                             .y0 = sides[1],
                             .x1 = sides[2],
                             .y1 = sides[3],
                             .ring = {}});
  }
  if (image.objects.empty() && !boxes->empty()) return std::nullopt;  // points only
  return image;
}

}  // namespace

ForeignSet read_swift_files(const std::vector<std::string>& paths, const ImportOptions& options) {
  ForeignSet set{.splits = {}, .notes = {}, .sources = paths};
  for (const std::string& path : paths) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    const std::string directory = options.images_dir.empty() ? parent : options.images_dir;
    auto& images = set.splits[options.split.empty() ? split_of_name(path) : options.split];
    int line_number = 0;
    for (const std::string& line : split(read_file(path), '\n')) {
      ++line_number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const JsonOrigin origin{.path = fmt::format("{}:{}", path, line_number),
                              .error = "this is not a grounding record of ms-swift",
                              .fix =
                                  "write {\"messages\": […], \"images\": [path], \"objects\": "
                                  "{\"ref\": […], \"bbox\": [[x1, y1, x2, y2], …]}}"};
      if (std::optional<ForeignImage> image = read_line(line, origin, directory, set)) {
        images.push_back(std::move(*image));
      } else {
        ++set.notes["left out: records without boxes"];
      }
    }
  }
  return set;
}

}  // namespace rematch
