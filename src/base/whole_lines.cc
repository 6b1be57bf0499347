#include "base/whole_lines.h"

namespace rematch {

std::string_view whole_lines(std::string_view content) {
  content = content.substr(0, content.find('\0'));
  const size_t end = content.rfind('\n');
  return end == std::string_view::npos ? std::string_view{} : content.substr(0, end + 1);
}

}  // namespace rematch
