#include "learn/estep/answer/answer_format.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"
#include "model/text/stop_ids.h"

namespace rematch {

AnswerFormat::AnswerFormat(std::shared_ptr<const Tokenizer> tokenizer, const std::string& where)
    : tokenizer_(std::move(tokenizer)) {
  const auto im_end = tokenizer_->token_id("<|im_end|>");
  if (!im_end) {
    throw data_error(
        {.error = "the tokenizer has no <|im_end|>",
         .where = where,
         .what = fmt::format("none of its {} ids is <|im_end|>", tokenizer_->num_ids()),
         .fix = "use the tokenizer.json of a model whose answers end with <|im_end|>"});
  }
  im_end_id_ = *im_end;
}

ParsedRollout AnswerFormat::parse(const std::vector<TokenId>& response_token_ids,
                                  const std::vector<TokenId>& stop_ids,
                                  const Prompt& prompt) const {
  return read(cut_at_stop_id(response_token_ids, stop_ids), prompt);
}

TaughtAnswer AnswerFormat::teach_rest(const ParsedRollout&, const Objects&) const {
  throw config_error({.error = "this answer format has no `target_policy: append`",
                      .where = "custom.extra.rollout_matching.target_policy",
                      .what =
                          "append teaches a bin at each coord token of the kept answer, and this "
                          "format writes digits",
                      .fix = "set `target_policy: rewrite`, or leave the key out"});
}

void AnswerFormat::check_geometry(GeometryKind, const std::string&) const {}

Choices<AnswerFormatRow>& answer_formats() {
  static Choices<AnswerFormatRow> table(
      "answer format", "answer_format", "",
      {coord_token_format(), relative_digits_format(), pixel_digits_format(),
       relative_boxes_format(), pixel_boxes_format()});
  return table;
}

std::unique_ptr<const AnswerFormat> make_answer_format(const std::string& name,
                                                       std::shared_ptr<const Tokenizer> tokenizer,
                                                       const std::string& where) {
  return answer_formats().find(name).make(std::move(tokenizer), where);
}

}  // namespace rematch
