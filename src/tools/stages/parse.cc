// `rematch stage parse`: response ids in, objects and kept prefix out.
#include <nlohmann/json.hpp>

#include "tools/stages/scene_input.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

Json object_json(const ParsedObject& object, bool has_coord_tokens) {
  Json value;
  if (!has_coord_tokens) {
    value["desc"] = object.desc;
    value["bbox_2d"] = object.geometry.bins;
    return value;
  }
  value["key"] = object.key;
  value["index"] = object.index;
  value["desc"] = object.desc;
  value["geometry"] = geometry_key(object.geometry.kind);
  value["bins"] = object.geometry.bins;
  value["coord_token_indices"] = Json::array();
  for (const TokenSpan& token : object.coord_tokens)
    value["coord_token_indices"].push_back(token.begin);
  return value;
}

class ParseStage : public AnswerStage {
 public:
  using AnswerStage::AnswerStage;

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::vector<TokenId> response_token_ids = fields.integers("response_token_ids");
    Prompt prompt;
    prompt.where = "input";
    prompt.resized_px = read_resized_px(fields);
    fields.finish();
    const bool has_coord_tokens = format_->coords() != nullptr;
    const ParsedRollout parsed = format_->parse(response_token_ids, stop_ids_, prompt);
    Json answer;
    answer["response_token_ids"] = parsed.response_token_ids;
    answer["objects"] = Json::array();
    for (const ParsedObject& object : parsed.objects)
      answer["objects"].push_back(object_json(object, has_coord_tokens));
    answer["dropped_invalid"] = parsed.dropped_invalid;
    if (has_coord_tokens) {
      answer["prefix_token_ids"] = parsed.prefix_token_ids;
      answer["prefix_text"] = parsed.prefix_text;
      answer["max_object_index"] =
          parsed.max_object_index ? Json(*parsed.max_object_index) : Json();
    }
    answer["status"] = parse_status_name(parsed.status);
    return answer;
  }
};

}  // namespace

std::unique_ptr<Stage> make_parse_stage(const StageOptions& options) {
  return std::make_unique<ParseStage>(options);
}

}  // namespace rematch
