#include "base/utf16.h"

#include "base/error.h"

namespace rematch {

void refuse_utf16(std::string_view text, const std::string& where) {
  if (!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF")) return;
  throw data_error({.error = "the text is UTF-16, not UTF-8",
                    .where = where,
                    .what = "it begins with a UTF-16 byte order mark",
                    .fix = "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"});
}

}  // namespace rematch
