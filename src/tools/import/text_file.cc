#include "tools/import/text_file.h"

#include "base/file.h"
#include "base/text.h"
#include "base/utf16.h"

namespace rematch {

std::string_view text_of(std::string_view bytes, const std::string& path) {
  refuse_utf16(bytes, path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return bytes;
}

std::vector<std::string> read_lines(const std::string& path) {
  return split(text_of(read_file(path), path), '\n');
}

}  // namespace rematch
