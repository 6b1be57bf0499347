#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/sample.h"
#include "base/json.h"

namespace rematch {

/// Most objects of a record and vertices of an outline: matching compares them pairwise.
inline constexpr size_t kMaxItems = 16384;

/// Finds which of many texts (the added tokens of a vocabulary) a string contains.
class ForbiddenTexts {
 public:
  explicit ForbiddenTexts(const Strings& texts);
  /// A forbidden text contained in `text`, or nullptr. Cost: |text| · (number of forbidden texts
  /// that share a first byte).
  const std::string* find_in(std::string_view text) const;

 private:
  std::array<Strings, 256> by_first_byte_;
};

/// Geometries that are legal besides bins 0..999 and boxes of ordered corners.
struct GeometryRules {
  bool allow_beyond = false;    ///< integers beyond 0..999
  bool allow_inverted = false;  ///< boxes with swapped corners
};

/// A member of a JSON object.
/// @throws UserError (data) when it is missing
const Json& require_field(const Json& object, const char* key, const std::string& where);

/// Reads `bbox_2d` or `poly` of an object, of integers or coord-token strings.
/// @throws UserError (data) at `where`
Geometry read_geometry(const Json& object, const std::string& where, const GeometryRules& rules);

/// Reads the `desc` of an object, trimmed and not blank.
/// @throws UserError (data) at `where`
std::string read_desc(const Json& object, const std::string& where);

/// Refuses a desc that cannot be taught: on two lines, with a tab, a control character or a
/// forbidden text.
/// @param forbidden  may be null.
/// @throws UserError (data) at `where`
void check_desc(const std::string& desc, const std::string& where, const ForbiddenTexts* forbidden);

/// `{"desc", "bbox_2d" or "poly"}`.
Json object_json(const std::string& desc, const Geometry& geometry);

}  // namespace rematch
