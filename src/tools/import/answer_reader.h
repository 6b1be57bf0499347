#pragma once
#include <string>
#include <string_view>

#include "tools/import/foreign.h"
#include "tools/import/reasons.h"

namespace rematch {

/// An image with the objects of an answer, in the unit of its numbers.
struct ImportedAnswer {
  ForeignImage image;
  bool is_list = false;  ///< the text is a list of boxes, perhaps an empty one
  std::string reason = reason::kNotAList, problem = {};  ///< why it is not

  size_t num_entries() const { return image.objects.size() + image.lost.size(); }
};

/// Reads the text of an answer: the wrappers of BEHAVIOUR 19.4, entries without a list around them,
/// one entry a line, and the older marks `<ref>`, `<box>`, `<|object_ref_start|>`, `<|box_start|>`.
/// @param text  after a think block (AnswerPlace::start)
/// @param image  that of the answer
ImportedAnswer read_answer(std::string_view text, const ForeignImage& image,
                           const ImportOptions& options, Ledger& ledger);

/// True if the text has a member of a geometry, or a list of two numbers or more.
bool has_written_box(std::string_view text);
/// The same, or old marks of a geometry.
bool mentions_geometry(std::string_view text);

/// True for an answer in the marks of older models: `<ref>…</ref><box>(x1,y1),(x2,y2)</box>`, or
/// `<|object_ref_start|>…<|box_start|>…<|box_end|>`.
bool has_old_marks(std::string_view text);

/// Removes the marks of names from a question: "Find <ref>a cat</ref>" becomes "Find a cat".
/// @return the name if there is exactly one, else ""
std::string unmark_names(std::string& question);

/// Reads such an answer. Four numbers are a box, eight or more an outline; a box belongs to the
/// last name before it.
void read_old_marks(std::string_view text, const ImportOptions& options, ImportedAnswer& answer,
                    Ledger& ledger);

}  // namespace rematch
