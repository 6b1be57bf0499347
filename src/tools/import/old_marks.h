#pragma once
#include <string>
#include <string_view>

#include "tools/import/answer_reader.h"

namespace rematch {

/// True for an answer in the marks of older models: `<ref>…</ref><box>(x1,y1),(x2,y2)</box>`, or
/// `<|object_ref_start|>…<|box_start|>…<|box_end|>`.
bool has_old_marks(std::string_view text);

/// Removes the marks of names from a question: "Find <ref>a cat</ref>" becomes "Find a cat".
/// @return the name if there is exactly one, else ""
std::string unmark_names(std::string& question);

/// Reads such an answer. Four numbers are a box, eight or more an outline; a box belongs to the
/// last name before it.
void read_old_marks(std::string_view text, const std::string& where, bool polygons,
                    ImportedAnswer& answer, Ledger& ledger);

}  // namespace rematch
