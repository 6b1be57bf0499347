#include "import/text_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {

std::vector<std::string> read_lines(const std::string& path) {
  const std::string bytes = read_file(path);
  std::string_view text = bytes;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw UserError(ErrorKind::kData,
                    {.error = "a text file is UTF-16",
                     .where = path,
                     .what = "it begins with a UTF-16 byte order mark; expected UTF-8",
                     .fix = "convert it: iconv -f UTF-16 -t UTF-8 " + shell_word(path)});
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return split(text, '\n');
}

}  // namespace rematch
