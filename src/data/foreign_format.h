#pragma once
#include <string>
#include <string_view>

namespace rematch {

/// Refuses annotations of another program in place of a JSONL: COCO, labelMe, Pascal VOC, YOLO,
/// ms-swift, conversations with boxes in the text. Returns if it recognises none of these formats.
/// @param bytes  the file's content; only its beginning is read
/// @throws UserError (data) with the `rematch data from-…` command to run
void refuse_foreign_format(const std::string& path, std::string_view bytes);

}  // namespace rematch
