// `rematch-stages stage logits`: token ids and image files in, the model's logits in a safetensors
// file out.
#include <ATen/ATen.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/checkpoint/safetensors.h"
#include "model/row.h"
#include "model_input.h"
#include "tool_stages.h"

namespace rematch {
namespace {

class LogitsStage : public ModelStage {
 public:
  using ModelStage::ModelStage;

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::vector<TokenId> token_ids = fields.integers("token_ids");
    const std::vector<std::string> paths = fields.texts("images");
    fields.finish();
    if (token_ids.empty()) {
      throw UserError(ErrorKind::kData, {.error = "token_ids is empty",
                                         .where = "input.token_ids",
                                         .what = "0 tokens",
                                         .fix = "pass at least one token"});
    }
    Json answer;
    answer["file"] = write(logits_TV(token_ids, paths));
    return answer;
  }

 private:
  at::Tensor logits_TV(const std::vector<TokenId>& token_ids,
                       const std::vector<std::string>& paths) const {
    const at::NoGradGuard no_grad;
    auto segment = std::make_shared<Segment>();
    segment->token_ids = token_ids;
    for (const std::string& path : paths) segment->images.push_back({.path = path});
    const RowBatch batch = make_row({.segments = {segment}}, pixels_from_files(model_dir_));
    return model_->head_KV(forward_row(*model_, batch)).to(at::kFloat);
  }

  std::string write(const at::Tensor& logits_TV) const {
    const std::string file = line_file(output_dir_, line_name_);
    write_safetensors(file, {{.name = "logits", .tensor = logits_TV}});
    return file;
  }
};

}  // namespace

std::unique_ptr<Stage> make_logits_stage(const StageOptions& options) {
  return std::make_unique<LogitsStage>(options);
}

}  // namespace rematch
