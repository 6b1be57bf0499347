#include "tools/import/text_file.h"

#include "base/file.h"
#include "base/text.h"
#include "base/utf16.h"

namespace rematch {

std::vector<std::string> read_lines(const std::string& path) {
  const std::string bytes = read_file(path);
  std::string_view text = bytes;
  refuse_utf16(text, path);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return split(text, '\n');
}

}  // namespace rematch
