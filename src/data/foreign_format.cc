#include "data/foreign_format.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr size_t kBeginning = size_t{1} << 20;

bool has(std::string_view where, const char* name) {
  return where.find(name) != std::string_view::npos;
}

[[noreturn]] void refuse_as(const char* format, const std::string& command,
                            const std::string& path) {
  throw UserError(
      ErrorKind::kData,
      {.error = fmt::format("the data are in another format: {}", format),
       .where = path,
       .what = "a JSONL with one record a line is expected: images, objects, width, height",
       .fix = fmt::format("run `rematch data {}`, then use the JSONL it writes (docs/data.md)",
                          command)});
}

/// Boxes of a conversation are in `objects`, or in the text of the answer.
/// @param first  record, or more where a JSON array holds the records
void refuse_conversations(std::string_view first, std::string_view text, const std::string& path) {
  const bool has_lists = has(first, "\"conversations\"");
  if (!has_lists && !has(first, "\"messages\"")) return;
  const bool has_text_answers = has_lists || has(text, "bbox_2d");
  if (has_text_answers && !has(text, "\"objects\""))
    refuse_as("conversations with boxes in the text of the answer",
              fmt::format("from-qwen {} --out DIR", shell_word(path)), path);
  refuse_as("ms-swift's messages", fmt::format("from-swift {} --out DIR", shell_word(path)), path);
}

}  // namespace

void refuse_foreign_format(const std::string& path, std::string_view bytes) {
  const std::string_view text = bytes.substr(0, kBeginning), line = text.substr(0, text.find('\n'));
  const auto refuse = [&path](const char* format, const std::string& command) {
    refuse_as(format, command, path);
  };
  refuse_conversations(text.starts_with('[') ? text : line, text, path);
  const bool is_coco =
      (has(text, "\"annotations\"") || has(text, "\"categories\"")) && has(text, "\"images\"");
  if (is_coco)
    refuse("COCO's annotations",
           fmt::format("from-coco {} --images DIR --out DIR", shell_word(path)));
  if (has(text, "\"shapes\"") && has(text, "\"imagePath\""))
    refuse("one of labelMe's annotations", "from-labelme DIR --out DIR");
  if (has(text, "<annotation>")) refuse("a Pascal VOC annotation", "from-voc DIR --out DIR");
  if (has(text, "names:") && has(text, "train:"))
    refuse("a YOLO data set", fmt::format("from-yolo {} --out DIR", shell_word(path)));
}

}  // namespace rematch
