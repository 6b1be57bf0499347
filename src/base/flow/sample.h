#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/flow/grid.h"
#include "base/flow/image_change.h"
#include "base/strings.h"

/// The nouns of the journey, in the order they appear: Sample → Rollout → ParsedRollout → Matching
/// → Segment → PackedRow / Window.
namespace rematch {

/// Number of coordinate bins; a bin is an integer 0..999 ("norm1000").
inline constexpr int kNumBins = 1000;

/// Label of a position that is not supervised by cross-entropy.
inline constexpr int kIgnoreLabel = -100;

enum class GeometryKind { kBbox2d, kPoly };

/// Box or polygon in bins. bbox_2d: x1,y1,x2,y2 (may be inverted); poly: x,y pairs of ≥ 3 vertices.
struct Geometry {
  GeometryKind kind = GeometryKind::kBbox2d;
  std::vector<int> bins;  ///< flat; 4 values (bbox_2d) or an even number ≥ 6 (poly), each 0..999

  bool operator==(const Geometry&) const = default;
};

/// The name of a sample in errors: "sample 17 (data/train.jsonl:18)".
/// @param where  "path:line", may be empty
inline std::string sample_name(int64_t sample_id, const std::string& where) {
  return "sample " + std::to_string(sample_id) + (where.empty() ? "" : " (" + where + ")");
}

/// The YAML/JSON key of a geometry: "bbox_2d" or "poly".
inline const char* geometry_key(GeometryKind kind) {
  return kind == GeometryKind::kBbox2d ? "bbox_2d" : "poly";
}

/// One thing in a scene.
struct SceneObject {
  std::string desc;  ///< trimmed, not blank, UTF-8
  Geometry geometry;

  bool operator==(const SceneObject&) const = default;
};

/// A scene.
using Objects = std::vector<SceneObject>;

/// An image of a prompt, by reference; pixels are loaded when they are needed
/// (model/vision/pixel_store.h).
struct ImageRef {
  std::string path;      ///< absolute or relative to the current directory
  GridThw grid_thw{};    ///< patches: time, height, width (before the spatial merge)
  ImageChange change{};  ///< applied to the decoded picture

  auto operator<=>(const ImageRef&) const = default;

  friend void fields(auto& wire, ImageRef& image) {
    wire(image.path, image.grid_thw, image.change);
  }
};

class ClassNames;

/// One image (or several, stage 1 only) with its objects: a line of the JSONL.
struct Sample {
  /// 0-based line number in the JSONL; with several files the count runs through all of them
  int64_t sample_id = 0;
  Strings image_paths;
  int width_px = 0;
  int height_px = 0;
  /// in file order; ordering for numbering happens per epoch (learn/data/ordering.h)
  Objects objects;
  std::string where;   ///< "path:line" for errors
  std::string prompt;  ///< user text of this sample; empty: `custom.user_prompt`
  ImageChange change;  ///< applied to its images; `objects` are in the changed picture

  /// names from which absent ones are drawn into the prompt (Dataset::offer_classes); null: none
  std::shared_ptr<const ClassNames> classes = nullptr;
  /// names of the objects in all records of its images, lower case; only with `classes`
  Strings image_names = {};
  Strings drawn_names = {};  ///< drawn into the prompt
};

}  // namespace rematch
