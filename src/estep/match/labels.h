#pragma once
#include <map>
#include <string>

namespace rematch {

/// When two descriptions are the same label (`label_match`, BEHAVIOUR 15). Labels are compared by
/// their canonical forms.
class LabelMatch {
 public:
  /// @param rule  "exact", "normalized" (NFKC, case folded, white space collapsed and trimmed), or
  /// the path of a JSON file of synonyms,
  ///              `{"person": ["man", "woman"], …}`, whose labels and synonyms are normalised, as
  ///              is what is compared
  /// @throws UserError (data) when the file has another form or a synonym belongs to two labels;
  /// (environment) when it cannot be read
  static LabelMatch from(const std::string& rule);
  LabelMatch() = default;  ///< "normalized"

  /// Equal for equal labels. @param desc  UTF-8
  std::string canonical(const std::string& desc) const;
  /// The same, normalised under "exact" too: COCO's classes (BEHAVIOUR 15).
  std::string class_of(const std::string& desc) const;
  /// "exact", "normalized", or the number of synonyms and a hash of them: equal for equal rules,
  /// wherever the file lies.
  std::string identity() const;

 private:
  bool exact_ = false;
  std::map<std::string, std::string> label_of_;  ///< normalised synonym → normalised label
};

}  // namespace rematch
