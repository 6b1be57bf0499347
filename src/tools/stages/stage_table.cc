#include "tools/stages/stage.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"

namespace rematch {

const std::vector<StageRow>& public_stages() {
  static const std::vector<StageRow> kTable = {
      {"parse",
       "response ids → objects, read strictly",
       {"model", "answer-format"},
       make_parse_stage},
      {"match", "predictions and ground truth → pairs", {}, make_match_stage},
      {"segment",
       "prompt, response and ground truth → teacher-forced segment",
       {"model", "answer-format"},
       make_segment_stage},
      {"pack", "lengths of waiting segments → segments of the next row", {}, make_pack_stage},
  };
  return kTable;
}

const StageRow& find_stage(const std::vector<StageRow>& table, const std::string& name,
                           const std::string& program) {
  std::vector<std::string> names;
  for (const StageRow& row : table) {
    if (name == row.name) return row;
    names.push_back(row.name);
  }
  const std::vector<std::string> near = near_names(name, names);
  throw UserError(
      ErrorKind::kConfig,
      {.error = fmt::format("unknown stage \"{}\"", name),
       .where = fmt::format("{} stage {}", program, name),
       .what = fmt::format("stages: {}", join(names, ", ")),
       .fix = near.empty() ? fmt::format("choose one of them, or run `rematch-stages stage {}`: "
                                         "`scripts/build rematch-stages` builds the stages of "
                                         "tests next to rematch",
                                         name)
                           : fmt::format("did you mean `{} stage {}`?", program, near[0])});
}

}  // namespace rematch
