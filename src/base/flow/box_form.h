#pragma once
#include <array>
#include <optional>
#include <string_view>

namespace rematch {

/// Meaning of the four numbers of a box.
enum class BoxForm {
  kCorners,  ///< left, top, right, bottom
  kSides,    ///< left, top, width, height
  kCentre,   ///< centre x, centre y, width, height
};

/// Names of the forms on the command line: xyxy, xywh, cxcywh.
inline const char* box_form_name(BoxForm form) {
  return form == BoxForm::kCorners ? "xyxy" : form == BoxForm::kSides ? "xywh" : "cxcywh";
}

/// The form of a name; nullopt for another text.
inline std::optional<BoxForm> find_box_form(std::string_view name) {
  for (const BoxForm form : {BoxForm::kCorners, BoxForm::kSides, BoxForm::kCentre}) {
    if (name == box_form_name(form)) return form;
  }
  return std::nullopt;
}

/// Left, top, right and bottom of a box.
inline std::array<double, 4> to_corners(const std::array<double, 4>& box, BoxForm form) {
  const auto& [a, b, c, d] = box;
  if (form == BoxForm::kCorners) return box;
  if (form == BoxForm::kSides) return {a, b, a + c, b + d};
  return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
}

}  // namespace rematch
