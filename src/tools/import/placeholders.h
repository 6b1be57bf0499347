#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "tools/import/foreign.h"

namespace rematch {

/// ms-swift's `objects` of a record: names and boxes, which the texts of the record mention as
/// `<ref-object>` and `<bbox>`, each in its own order.
class Placeholders {
 public:
  /// Reads `objects`: `ref`, `bbox` and `bbox_type`, or the older list of `caption` and `bbox`,
  /// also as text.
  /// @throws UserError (data) with the field
  Placeholders(const Json& record, const JsonOrigin& origin);

  bool has_boxes() const { return has_boxes_; }
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<Json>& boxes() const { return boxes_; }
  /// 0: pixels; else the divisor that makes the numbers shares of the sides
  double divisor() const { return divisor_; }
  /// Removes the names that were filled in so far: those of a system message name no box.
  void forget_used_names() {
    names_.erase(names_.begin(),
                 names_.begin() + static_cast<std::ptrdiff_t>(std::min(next_name_, names_.size())));
    next_name_ = 0;
  }

  /// Fills the next names in; boxes become marks that box_of() knows. In JSON strings names are
  /// escaped.
  /// @param counts  receives the indices of the first name and box that are left
  std::string fill(const std::string& text, bool as_json);
  /// Index of the next name and box.
  size_t next_name() const { return next_name_; }
  size_t next_box() const { return next_box_; }

  /// The box that a mark stands for; nullopt for other values.
  std::optional<Json> box_of(const Json& value) const;

 private:
  void read_list(const Json& list, const JsonOrigin& origin);

  std::vector<std::string> names_;
  std::vector<Json> boxes_;
  bool has_boxes_ = false;
  double divisor_ = 0;
  size_t next_name_ = 0, next_box_ = 0;
};

inline constexpr std::string_view kBoxPlaceholder = "<bbox>", kNamePlaceholder = "<ref-object>";

}  // namespace rematch
