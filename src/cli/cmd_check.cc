#include <ostream>

#include "base/terminal_text.h"
#include "cli/commands.h"
#include "config/config.h"

namespace rematch {

int run_check(const std::string& config_path, const std::vector<std::string>& overrides,
              std::ostream& out, bool all_values) {
  const ConfigResult result = load_config(config_path, overrides);
  if (all_values) {
    out << effective_text(result);
    return 0;
  }
  out << brief_text(result) << "run directory: " << result.settings.output.run_dir << "\n";
  for (const Warning& warning : result.warnings)
    out << wrapped("warning: " + warning.text + " (" + warning.where + ")", 2) << "\n";
  return 0;
}

}  // namespace rematch
