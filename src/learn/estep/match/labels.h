#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/text.h"

namespace rematch {

/// Decides if two descriptions are the same label (`label_match`, BEHAVIOUR 15).
class LabelMatch {
 public:
  /// Brings a text into the form in which a model reads and writes it (Tokenizer::normalize).
  using TextForm = std::function<std::string(std::string_view)>;

  /// @param rule  "exact", "normalized" (NFKC, case folded, white space collapsed and trimmed), or
  /// the path of a JSON file of synonyms, `{"person": ["man", "woman"], …}`; then labels are
  /// normalised before they are compared
  /// @param form  applied under "exact": no answer can have a form that the tokenizer changes.
  /// Empty: labels are compared byte for byte
  /// @throws UserError (data) when the file has another form or a synonym belongs to two labels;
  /// (environment) when it cannot be read
  static LabelMatch from(const std::string& rule, TextForm form = {});
  LabelMatch() = default;  ///< "normalized"

  /// True when two descriptions (UTF-8) are the same label.
  bool same(const std::string& a, const std::string& b) const {
    return canonical(a) == canonical(b);
  }
  /// False for a label that a file of synonyms does not have.
  bool knows(const std::string& desc) const {
    return labels_by_name_.empty() || labels_by_name_.contains(normalize_label(desc));
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
  TextForm form_;                                      ///< may be empty
  std::map<std::string, std::string> labels_by_name_;  ///< normalised synonym → normalised label
};

}  // namespace rematch
