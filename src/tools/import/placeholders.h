#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace rematch {

/// ms-swift's `objects` of a record: names and boxes, which fill the places `<ref-object>` and
/// `<bbox>` in the texts of the record, each in its own order. All functions throw LeftOut for
/// names and boxes that do not pair.
class Placeholders {
 public:
  /// Reads `ref`, `bbox` and `bbox_type` of `objects`.
  explicit Placeholders(const Json& record);

  bool has_boxes() const { return has_boxes_; }
  size_t num_boxes() const;
  size_t num_used() const { return next_box_; }
  bool is_in_shares() const { return divisor_ != 0; }

  /// Fills the names of a question in, which has no boxes.
  std::string fill_question(const std::string& text);
  /// Fills the names of a system message in: they name no box.
  void use_up(const std::string& system);
  /// Fills a text of the assistant in: JSON with its numbers, a caption as `<ref>…</ref><box>…
  /// </box>`. Without `<ref-object>` in a caption, names and boxes pair one to one, or one name
  /// stands for all.
  std::string fill_answer(const std::string& text);
  /// All boxes, as a caption that mentions each.
  std::string fill_all();

 private:
  const std::string& next_name();
  std::string next_box();

  Strings names_;
  std::vector<Json> boxes_;
  bool has_boxes_ = false;
  double divisor_ = 0;  ///< 0: pixels; else what makes the numbers shares of the sides
  size_t next_name_ = 0, next_box_ = 0;
};

}  // namespace rematch
