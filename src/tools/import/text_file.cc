#include "tools/import/text_file.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/utf16.h"

namespace rematch {

std::string_view text_of(std::string_view bytes, const std::string& path) {
  refuse_utf16(bytes, path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return bytes;
}

std::string read_utf8(const std::string& path) {
  const std::string bytes = read_file(path);
  const std::string_view text = text_of(bytes, path);
  if (is_valid_utf8(text)) return std::string(text);
  throw UserError(
      ErrorKind::kData,
      {.error = "the file is not UTF-8",
       .where = path,
       .what = "a byte of it belongs to no character",
       .fix = fmt::format("convert it from the encoding that it has (GBK, ISO-8859-1, …): iconv -f "
                          "GBK -t UTF-8 {} > NEW",
                          shell_word(path))});
}

std::vector<std::string> read_lines(const std::string& path) {
  return split(text_of(read_file(path), path), '\n');
}

}  // namespace rematch
