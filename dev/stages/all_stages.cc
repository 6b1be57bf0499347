#include <fmt/core.h>

#include "base/error.h"
#include "tool_stages.h"
#include "tools/stages/stage.h"

namespace rematch {

std::string line_file(const std::string& directory, const std::string& name) {
  if (name.empty() || name.front() == '.' || name.size() > 200 ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    throw UserError(
        ErrorKind::kData,
        {.error = "the id cannot be a file name",
         .where = "id",
         .what = name.substr(0, 80),
         .fix = "use ids of 1 to 200 characters without \"/\" that do not start with a dot"});
  }
  return fmt::format("{}/{}.safetensors", directory, name);
}

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
