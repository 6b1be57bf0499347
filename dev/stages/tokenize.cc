// `rematch-stages stage tokenize`: text in, token ids out, or the other way round.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/text/lossy.h"
#include "model/text/tokenizer.h"
#include "tool_stages.h"

namespace rematch {
namespace {

class TokenizeStage : public Stage {
 public:
  explicit TokenizeStage(const StageOptions& options)
      : tokenizer_(Tokenizer::load(options.model_dir)) {}

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const bool has_text = fields.has("text"), has_ids = fields.has("token_ids");
    if (has_text == has_ids) {
      fields.finish();  // an unknown key explains more than a missing one
      throw UserError(ErrorKind::kData, {.error = "the input needs either text or token_ids",
                                         .where = "input",
                                         .what = has_text ? "both are given" : "neither is given",
                                         .fix = "pass exactly one of them"});
    }
    Json answer;
    if (has_ids) {
      const std::vector<TokenId> token_ids = fields.integers("token_ids");
      fields.finish();
      answer["text"] = lossy_utf8(tokenizer_->decode_bytes(token_ids));
      return answer;
    }
    const std::string text = fields.text("text");
    const bool add_special_tokens = fields.boolean_or("add_special_tokens", false);
    fields.finish();
    std::vector<TokenId> token_ids = tokenizer_->encode(text);
    if (add_special_tokens) token_ids = tokenizer_->add_special_tokens(std::move(token_ids));
    answer["token_ids"] = token_ids;
    answer["pieces"] = Json::array();
    for (const TokenId id : token_ids)
      answer["pieces"].push_back(lossy_utf8(tokenizer_->token_bytes(id)));
    return answer;
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::unique_ptr<Stage> make_tokenize_stage(const StageOptions& options) {
  return std::make_unique<TokenizeStage>(options);
}

}  // namespace rematch
