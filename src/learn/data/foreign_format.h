#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace rematch {

/// A format of annotations that is known by name.
struct ForeignFormat {
  const char* name = "";  ///< "COCO annotations"
  /// the command that reads it, e.g. "from-coco"; empty: none does
  const char* command = "";
  std::string fix;  ///< the command to run, or how to export the data in another format
};

/// Recognises annotations of another program by the beginning of a file: COCO, labelMe, Pascal VOC,
/// YOLO, conversations, CSV, Hugging Face, Label Studio, FiftyOne and others.
/// @param path  for the command in the fix
std::optional<ForeignFormat> find_foreign_format(const std::string& path, std::string_view bytes);

/// Refuses annotations of another program in place of a JSONL, and files that are no JSON lines: a
/// JSON array, pretty-printed JSON, UTF-16. Returns if it recognises none of these.
/// @param bytes  the file's content; only its beginning is read
/// @throws UserError (data) with the command to run
void refuse_foreign_format(const std::string& path, std::string_view bytes);

}  // namespace rematch
