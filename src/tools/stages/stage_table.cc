#include "tools/stages/stage.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

// Stages of `rematch-stages` only; here just their names.
constexpr const char* kToolNames[] = {"tokenize", "render", "pixels", "generate",
                                      "logits",   "loss",   "grad"};

[[noreturn]] void refuse_tool(const std::string& name) {
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("stage {} is not part of rematch", name),
                   .where = fmt::format("rematch stage {}", name),
                   .what = "it belongs to `rematch-stages`, which is built from source only",
                   .fix = fmt::format("run `rematch-stages stage {}` with the same arguments; "
                                      "`scripts/build rematch-stages` builds it next to rematch",
                                      name)});
}

}  // namespace

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
  if (std::find(std::begin(kToolNames), std::end(kToolNames), name) != std::end(kToolNames))
    refuse_tool(name);

  const std::vector<std::string> near = near_names(name, names);
  throw UserError(
      ErrorKind::kConfig,
      {.error = fmt::format("unknown stage \"{}\"", name),
       .where = fmt::format("{} stage {}", program, name),
       .what = fmt::format("stages: {}", join(names, ", ")),
       .fix = near.empty() ? "choose one of them"
                           : fmt::format("did you mean `{} stage {}`?", program, near[0])});
}

}  // namespace rematch
