#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "tools/draw/canvas.h"

namespace rematch {

/// An object to draw on its image.
struct DrawnObject {
  Geometry geometry;
  std::string label;  ///< at its upper left corner; empty = none
  Rgb color = kTruthColor;
};

/// A colour for each class, in the order in which they are first asked for; from the thirteenth on
/// they repeat.
class ClassColors {
 public:
  Rgb of(const std::string& name);

 private:
  std::map<std::string, Rgb> colors_;
};

/// The name of an object with its score, "cat 0.42"; without one below 0.005.
/// @param scores  calibrated (ScoreCalibration), or empty: other scores tell a reader nothing
std::string scored_label(const std::string& name, const std::vector<double>& scores, size_t object);

/// Vertices of a geometry in pixels of an image of this size; a box has four.
std::vector<Point> vertices_px(const Geometry& geometry, int width_px, int height_px);

/// The image with its longer side scaled to `long_side_px`.
Image scale_to(const Image& image, int long_side_px);

/// The scaled image with objects drawn over it.
/// @param links  pairs of indices into `objects`; a line connects their centres
Canvas scene_panel(const Image& image, const std::vector<DrawnObject>& objects, int long_side_px,
                   const std::vector<std::pair<int, int>>& links = {});

/// A grey panel that says why there is no image.
Canvas blank_panel(const std::string& reason, int long_side_px);

/// Meaning of a colour, for the line above a sheet.
struct LegendEntry {
  Rgb color;
  std::string text;
};

/// Panels in rows of `num_columns`, each with a caption above it.
/// @param panels  at least one
/// @param legend  above all panels; entries that do not fit the width are left out
Canvas sheet_of(const std::vector<std::pair<std::string, Canvas>>& panels, int num_columns,
                const std::vector<LegendEntry>& legend = {});

}  // namespace rematch
