#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Recognises annotations of another program in a file that was given as a JSONL: COCO, labelMe,
/// Pascal VOC, YOLO, ms-swift, conversations with boxes in the text.
/// @param bytes  the file's content; only its beginning is looked at
/// @throws UserError (data) naming the `rematch data from-…` command to run; returns when the
/// format is not known
void refuse_foreign_format(const std::string& path, std::string_view bytes);

}  // namespace rematch
