#include "tool_stages.h"
#include "tools/stages/stage_table.h"

namespace rematch {

const std::vector<StageRow>& all_stages() {
  static const std::vector<StageRow> kTable = [] {
    std::vector<StageRow> table = {
        {"tokenize", "text ↔ token ids", {"model"}, make_tokenize_stage},
        {"render",
         "messages → prompt text and ids through the checkpoint's chat template",
         {"model"},
         make_render_stage},
        {"pixels",
         "an image → normalised patches (safetensors)",
         {"model", "out"},
         make_pixels_stage},
        {"generate",
         "prompts → answers",
         {"model", "backend", "dtype", "device", "batch-size"},
         make_generate_stage}};
    table.insert(table.end(), public_stages().begin(), public_stages().end());
    table.insert(table.end(), {{"logits",
                                "token ids and images → logits (safetensors)",
                                {"model", "out", "dtype", "device"},
                                make_logits_stage},
                               {"loss", "logits and targets → losses", {}, make_loss_stage},
                               {"grad",
                                "one forward and backward of a row → gradients (safetensors)",
                                {"model", "out", "dtype", "device"},
                                make_grad_stage}});
    return table;
  }();
  return kTable;
}

}  // namespace rematch
