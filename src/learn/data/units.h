#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/flow/box_form.h"

/// The meaning of the numbers of boxes, decided in one place for everything that reads boxes.
namespace rematch {

/// Units of coordinates.
enum class CoordinateUnit {
  kBins,    ///< thousandths of the sides, 0 … 1000
  kPixels,  ///< of the image
  kShares,  ///< 0 … 1 of the sides
};
inline constexpr EnumName<CoordinateUnit> kCoordinateUnits[] = {
    {CoordinateUnit::kBins, "bins"},
    {CoordinateUnit::kPixels, "pixels"},
    {CoordinateUnit::kShares, "normalized"}};
constexpr std::span<const EnumName<CoordinateUnit>> names_of(CoordinateUnit) {
  return kCoordinateUnits;
}

/// The numbers of a box (four) or an outline (x, y, x, y, …).
using Numbers = std::vector<double>;

/// The four numbers of a box in a form.
Numbers from_corners(const std::array<double, 4>& corners, BoxForm form);

/// Facts about the numbers of a set of images: how they lie in their images for each unit and each
/// form of boxes.
class UnitEvidence {
 public:
  /// Boxes that are read in one way.
  struct Reading {
    int64_t num_inside = 0;   ///< with a width and a height, and no edge outside the image
    int64_t num_outside = 0;  ///< with an edge outside the image
    int64_t num_far = 0;      ///< with an edge outside by more than a twentieth of the side
    bool some_leave = false;  ///< a number, also of an outline, is outside the image
  };

  /// Adds the boxes and outlines of an image.
  /// @param width, height  of the image, in pixels
  void add(const std::vector<Numbers>& geometries, double width, double height);

  const Reading& read_as(CoordinateUnit unit, BoxForm form) const {
    return readings_[static_cast<size_t>(unit)][static_cast<size_t>(form)];
  }

  int64_t num_objects = 0, num_boxes = 0;
  int64_t num_swapped = 0;  ///< boxes whose numbers would be swapped corners
  double least = 0, most = 0;
  bool has_fractions = false;  ///< in images that are not `num_small`
  int64_t num_images = 0;      ///< with objects
  int64_t num_small = 0;       ///< of these: no number exceeds 1.5
  int64_t num_shares = 0;      ///< of these: with fractions
  /// Logarithm of the chance that evenly spread bins would all be within the sides of their images.
  double log_chance = 0;

 private:
  std::array<std::array<Reading, 3>, 3> readings_{};
};

/// A reason to think that numbers mean something else than they are read as.
struct UnitDoubt {
  CoordinateUnit unit{};  ///< that they are probably in
  bool is_sure = false;   ///< there are enough objects to decide without the user
  const char* why = "";   ///< "look normalized (0 to 1)"
};
/// Judges numbers that are read as bins or as pixels; nullopt: no doubt.
std::optional<UnitDoubt> doubt_unit(const UnitEvidence& evidence, CoordinateUnit read_as,
                                    BoxForm form = BoxForm::kCorners);

/// True if bins would probably not all lie within the sides of their images as these numbers do.
bool look_like_pixels(const UnitEvidence& evidence, BoxForm form = BoxForm::kCorners);

/// Boxes that are probably of another form than they are read as.
struct FormDoubt {
  std::vector<BoxForm> fitting;  ///< forms that all lie inside in; corners: in any order
  bool is_sure = false;          ///< only one fits, and there are enough boxes to decide
  std::string why;               ///< "swapped corners in 2 of 3 boxes; they fit …"
};
/// Judges the form of boxes; nullopt: no doubt.
/// @param unit  of the numbers; unset: any that they can be in
std::optional<FormDoubt> doubt_form(const UnitEvidence& evidence,
                                    std::optional<CoordinateUnit> unit, BoxForm read_as);
/// "x, y, width, height".
const char* form_words(BoxForm form);

}  // namespace rematch
