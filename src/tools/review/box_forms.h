#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/flow/box_form.h"
#include "base/json.h"

namespace rematch {

/// The four numbers of an object's box under any usual key, flat or in pairs, also as text; nullopt
/// for objects without.
std::optional<std::array<double, 4>> find_four_numbers(const Json& object);

/// Recognises boxes that are x, y, width, height or centre, width, height: more than one in twenty
/// has swapped corners.
class BoxFormCensus {
 public:
  /// @param record  of any shape
  void add(const Json& record);

  int64_t num_boxes() const { return num_boxes_; }
  int64_t num_swapped() const { return num_swapped_; }
  bool is_suspicious() const { return 20 * num_swapped_ > num_boxes_; }
  /// "these look like x, y, width, height (all lie inside their image when read so)".
  std::string verdict() const;
  /// The value of --boxes that fits most boxes: "xywh" or "cxcywh".
  const char* likely_form() const { return num_as_centre_ > num_as_sides_ ? "cxcywh" : "xywh"; }

 private:
  int64_t num_boxes_ = 0, num_swapped_ = 0, num_as_sides_ = 0, num_as_centre_ = 0;
};

}  // namespace rematch
