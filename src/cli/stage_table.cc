#include "cli/stage_table.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace rematch {

const std::vector<StageRow>& stage_table() {
  static const std::vector<StageRow> kTable = {
      {"tokenize", "text ↔ token ids", {"model"}, make_tokenize_stage},
      {"render",
       "messages → prompt text and ids through the checkpoint's chat template",
       {"model"},
       make_render_stage},
      {"pixels",
       "an image → normalised patches (safetensors)",
       {"model", "output"},
       make_pixels_stage},
      {"generate",
       "prompts → answers",
       {"model", "backend", "dtype", "device", "batch-size"},
       make_generate_stage},
      {"parse", "response ids → objects, read strictly", {"model"}, make_parse_stage},
      {"match", "predictions and ground truth → pairs", {}, make_match_stage},
      {"segment",
       "prompt, response and ground truth → teacher-forced segment",
       {"model"},
       make_segment_stage},
      {"pack", "lengths of waiting segments → those that share the next row", {}, make_pack_stage},
      {"logits",
       "token ids and images → logits (safetensors)",
       {"model", "output", "dtype", "device"},
       make_logits_stage},
      {"loss", "logits and targets → losses", {}, make_loss_stage},
      {"grad",
       "one forward and backward of a row → gradients (safetensors)",
       {"model", "output", "dtype", "device"},
       make_grad_stage},
  };
  return kTable;
}

const StageRow& find_stage(const std::string& name) {
  std::vector<std::string> names;
  for (const StageRow& row : stage_table()) {
    if (name == row.name) return row;
    names.push_back(row.name);
  }
  const std::vector<std::string> near = near_names(name, names);
  throw UserError(ErrorKind::kConfig,
                  {.error = fmt::format("unknown stage \"{}\"", name),
                   .where = fmt::format("rematch stage {}", name),
                   .what = fmt::format("stages: {}", join(names, ", ")),
                   .fix = near.empty() ? "choose one of them"
                                       : fmt::format("did you mean `rematch stage {}`?", near[0])});
}

}  // namespace rematch
