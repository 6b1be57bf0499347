#include "base/choices.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"

namespace rematch {

void refuse_choice(std::string_view name, const std::string& kind, const std::string& key,
                   const std::string& way_out, const Strings& names) {
  const Strings near = near_names(name, names, 1);
  const std::string list = join(names, ", ");
  std::string fix =
      near.empty() ? fmt::format("set `{}` to one of {}", key, list)
                   : fmt::format("did you mean \"{}\"? `{}` is one of {}", near.front(), key, list);
  if (!way_out.empty()) fix += ", or " + way_out;
  throw config_error({.error = fmt::format("unknown {} \"{}\"", kind, name),
                      .where = key,
                      .what = fmt::format("there are {}", list),
                      .fix = std::move(fix)});
}

}  // namespace rematch
