#include "base/missing_path.h"

namespace rematch {

UserError missing_path(const std::string& thing, const std::string& path, const std::string& fix) {
  return {ErrorKind::kEnvironment, Problem{.error = "the " + thing + " does not exist",
                                           .where = path,
                                           .what = "no file or directory has this name",
                                           .fix = fix}};
}

}  // namespace rematch
