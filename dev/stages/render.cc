// `rematch-stages stage render`: messages in, the prompt's text and ids out, as the checkpoint's
// own chat template writes them.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "model/text/chat_template.h"
#include "model/text/prompt.h"
#include "model/text/tokenizer.h"
#include "model/vision/image.h"
#include "model/vision/patches.h"
#include "tool_stages.h"

namespace rematch {
namespace {

constexpr std::string_view kImagePad = "<|image_pad|>";

// The text with each pad repeated as often as its image needs.
std::string expand_text(const std::string& text, const std::vector<GridThw>& grids,
                        int merge_size) {
  std::string out;
  size_t done = 0, image = 0;
  for (size_t at = text.find(kImagePad); at != std::string::npos; at = text.find(kImagePad, done)) {
    out += text.substr(done, at - done);
    for (int64_t i = 0, count = num_image_pads(grids.at(image++), merge_size); i < count; ++i)
      out += kImagePad;
    done = at + kImagePad.size();
  }
  return out + text.substr(done);
}

class RenderStage : public Stage {
 public:
  explicit RenderStage(const StageOptions& options)
      : model_dir_(options.model_dir),
        tokenizer_(Tokenizer::load(model_dir_)),
        chat_template_(ChatTemplate::load(model_dir_)) {}

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const Json& messages = fields.at("messages");
    const bool add_generation_prompt = fields.boolean_or("add_generation_prompt", false);
    const std::vector<std::string> paths = fields.texts("images");
    fields.finish();

    std::string text = chat_template_.render(messages, add_generation_prompt);
    std::vector<TokenId> token_ids = tokenizer_->encode(text);
    std::vector<GridThw> grids;
    for (const std::string& path : paths) grids.push_back(grid_of_file(path));
    if (!grids.empty()) {
      const TokenId pad_id = tokenizer_->token_id(kImagePad).value_or(-1);
      token_ids =
          expand_image_pads(token_ids, pad_id, grids, options().merge_size, chat_template_.where());
      text = expand_text(text, grids, options().merge_size);
    }
    Json answer;
    answer["text"] = text;
    answer["token_ids"] = token_ids;
    answer["image_grid_thw"] = grids;
    return answer;
  }

 private:
  // Read with the first image: rendering alone needs no image processor.
  const PatchOptions& options() {
    if (!options_.has_value()) options_ = PatchOptions::from_model_dir(model_dir_);
    return *options_;
  }

  GridThw grid_of_file(const std::string& path) {
    const ImageSize size = read_image_size(path);
    return processed_grid(size, options(), path);
  }

  std::string model_dir_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  ChatTemplate chat_template_;
  std::optional<PatchOptions> options_;
};

}  // namespace

std::unique_ptr<Stage> make_render_stage(const StageOptions& options) {
  return std::make_unique<RenderStage>(options);
}

}  // namespace rematch
