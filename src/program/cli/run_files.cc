#include "program/cli/run_files.h"

#include <fmt/core.h>

#include "base/terminal_text.h"
#include "tools/report/score_table.h"

namespace rematch {

InputFiles run_files(const std::vector<RunData>& runs) {
  InputFiles inputs;
  for (const RunData& run : runs) {
    for (const std::string& file : run.files) inputs.add(file);
  }
  return inputs;
}

void print_warnings(const std::vector<RunData>& runs, Terminal& terminal) {
  const bool has_scores = !list_evaluations(runs).empty();
  for (const RunData& run : runs) {
    terminal.warn_all(run.warnings);
    if (has_scores && run.evaluations.empty())
      terminal.warn(fmt::format("{} has no evaluation and no scores here: rematch eval {}",
                                run.path, shell_word(run.path)));
  }
}

}  // namespace rematch
