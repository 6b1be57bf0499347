#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "base/json.h"

namespace rematch {

/// Left, top, width and height in pixels.
using CocoBox = std::array<double, 4>;

/// The bounding box of a geometry in pixels: left, top, right and bottom.
std::array<double, 4> edges_px(const Geometry& geometry, int width_px, int height_px);
/// The same as COCO writes it.
CocoBox coco_box(const Geometry& geometry, int width_px, int height_px);

/// An entry of COCO's list of results.
Json coco_result(int64_t image_id, int64_t category_id, const CocoBox& box, double score);

/// A COCO file. Classes are numbered from 1, by their sorted names.
class CocoFile {
 public:
  explicit CocoFile(const std::set<std::string>& labels);
  int64_t category_id(const std::string& label) const { return ids_.at(label); }
  void add_image(int64_t id, const std::string& path, int width_px, int height_px);
  void add_box(int64_t image_id, const std::string& label, const CocoBox& box,
               std::optional<double> score = std::nullopt);
  std::string text() const;

 private:
  Strings images_, categories_, annotations_;
  std::map<std::string, int64_t> ids_;
};

/// The ids of the images and classes of a COCO file.
class CocoIds {
 public:
  /// @throws UserError (data) for a file without images and categories with ids and names, or with
  /// an id or a name of them twice
  explicit CocoIds(const std::string& path);
  /// The id of the image to which a path leads: that of the longest end of the path which is the
  /// `file_name` of one.
  /// @throws UserError (data) for an image that the file does not have
  int64_t image_id(const std::string& path) const;
  /// @throws UserError (data) if the COCO file gives an image another size: boxes in pixels would
  /// mean other places
  void require_size(const std::string& path, int width_px, int height_px) const;
  std::optional<int64_t> category_id(const std::string& label) const;

 private:
  using Entries = std::map<std::string, Json>;  // by name
  Entries read(const Json& json, const char* list, const char* name) const;
  const Json& image(const std::string& path) const;

  std::string path_;
  Entries images_, categories_;
};

}  // namespace rematch
