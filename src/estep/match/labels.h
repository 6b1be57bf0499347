#pragma once
#include <map>
#include <string>

namespace rematch {

/// Decides if two descriptions are the same label (`label_match`, BEHAVIOUR 15).
class LabelMatch {
 public:
  /// @param rule  "exact", "normalized" (NFKC, case folded, white space collapsed and trimmed), or
  /// the path of a JSON file of synonyms, `{"person": ["man", "woman"], …}`; then labels are
  /// normalised before they are compared
  /// @throws UserError (data) when the file has another form or a synonym belongs to two labels;
  /// (environment) when it cannot be read
  static LabelMatch from(const std::string& rule);
  LabelMatch() = default;  ///< "normalized"

  /// True when two descriptions (UTF-8) are the same label.
  bool same(const std::string& a, const std::string& b) const {
    return canonical(a) == canonical(b);
  }
  /// Canonical form of a label.
  std::string canonical(const std::string& desc) const;
  /// Name of the COCO class of a label (BEHAVIOUR 15): canonical, and normalised even under
  /// "exact".
  std::string class_name(const std::string& desc) const;
  /// "exact", "normalized", or the number of synonyms and their hash. Independent of the file's
  /// path.
  std::string identity() const;

 private:
  bool exact_ = false;
  std::map<std::string, std::string> labels_by_name_;  ///< normalised synonym → normalised label
};

}  // namespace rematch
