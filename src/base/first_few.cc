#include "base/first_few.h"

#include "base/text.h"

namespace rematch {

std::string first_few(Strings parts, size_t most) {
  const bool has_more = parts.size() > most;
  if (has_more) parts.resize(most);
  return join(parts, ", ") + (has_more ? ", …" : "");
}

}  // namespace rematch
