#include "data/foreign_format.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/utf16.h"

namespace rematch {
namespace {

constexpr size_t kBeginning = size_t{1} << 20;

bool has(std::string_view where, const char* name) {
  return where.find(name) != std::string_view::npos;
}

[[noreturn]] void refuse_format(const char* format, const std::string& command,
                                const std::string& path) {
  throw UserError(
      ErrorKind::kData,
      {.error = fmt::format("this file has another format: {}", format),
       .where = path,
       .what = "expected a JSONL with one record per line: images, objects, width, height",
       .fix = fmt::format("run `rematch data {}`, then use the JSONL that it writes (docs/data.md)",
                          command)});
}

/// Refuses conversations with boxes in `objects` or in the text of the answer.
/// @param first  the first record, or the whole text if it is a JSON array
void refuse_conversations(std::string_view first, std::string_view text, const std::string& path) {
  const bool has_lists = has(first, "\"conversations\"");
  if (!has_lists && !has(first, "\"messages\"")) return;
  const bool has_text_answers = has_lists || has(text, "bbox_2d");
  if (has_text_answers && !has(text, "\"objects\""))
    refuse_format("conversations with boxes in the text of the answer",
                  fmt::format("from-qwen {} --out DIR", shell_word(path)), path);
  refuse_format("ms-swift messages", fmt::format("from-swift {} --out DIR", shell_word(path)),
                path);
}

}  // namespace

void refuse_foreign_format(const std::string& path, std::string_view bytes) {
  refuse_utf16(bytes, path);
  const std::string_view text = bytes.substr(0, kBeginning), line = text.substr(0, text.find('\n'));
  refuse_conversations(text.starts_with('[') ? text : line, text, path);
  const bool is_coco =
      (has(text, "\"annotations\"") || has(text, "\"categories\"")) && has(text, "\"images\"");
  if (is_coco)
    refuse_format("COCO annotations",
                  fmt::format("from-coco {} --images DIR --out DIR", shell_word(path)), path);
  if (has(text, "\"shapes\"") && has(text, "\"imagePath\""))
    refuse_format("a labelMe annotation", "from-labelme DIR --out DIR", path);
  if (has(text, "<annotation>"))
    refuse_format("a Pascal VOC annotation", "from-voc DIR --out DIR", path);
  if (has(text, "names:") && has(text, "train:"))
    refuse_format("a YOLO data set", fmt::format("from-yolo {} --out DIR", shell_word(path)), path);
}

}  // namespace rematch
