#include <ostream>

#include "cli/commands.h"
#include "config/config.h"

namespace rematch {

int run_check(const std::string& config_path, const std::vector<std::string>& overrides,
              std::ostream& out) {
  out << effective_text(load_config(config_path, overrides));
  return 0;
}

}  // namespace rematch
