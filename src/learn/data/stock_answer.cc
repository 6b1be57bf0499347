#include "learn/data/stock_answer.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/json.h"

namespace rematch {
StockSides stock_sides(const StockScale& scale, const ImageSize& file, const std::string& where) {
  if (scale.unit == StockScale::Unit::kThousandths) return {};
  if (scale.unit == StockScale::Unit::kShares) return {.x = 1, .y = 1, .in_pixels = true};
  if (scale.unit == StockScale::Unit::kFilePixels)
    return {.x = file.width_px, .y = file.height_px, .in_pixels = true};
  const ImageSize resized = smart_resize(file, scale.resize, where);
  return {.x = resized.width_px, .y = resized.height_px, .in_pixels = true};
}

std::string format_stock_answer(const Objects& objects, const StockSides& sides) {
  std::string text = "```json\n[";
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto& [desc, geometry] = objects[i];
    REMATCH_CHECK(geometry.kind == GeometryKind::kBbox2d, "an outline in a stock answer");
    text += fmt::format("{}\n\t{{\"bbox_2d\": [{}, {}, {}, {}], \"label\": {}}}", i > 0 ? "," : "",
                        sides.number(geometry.bins[0], 0), sides.number(geometry.bins[1], 1),
                        sides.number(geometry.bins[2], 2), sides.number(geometry.bins[3], 3),
                        python_json_string(desc));
  }
  return text + (objects.empty() ? "]\n```" : "\n]\n```");
}

}  // namespace rematch
