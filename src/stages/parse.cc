// `rematch stage parse`: response ids in, objects and kept prefix out.
#include <nlohmann/json.hpp>

#include "estep/parse/strict_parser.h"
#include "stages/stage.h"
#include "text/stop_ids.h"
#include "text/tokenizer.h"

namespace rematch {
namespace {

Json object_json(const ParsedObject& object) {
  Json value;
  value["key"] = object.key;
  value["index"] = object.index;
  value["desc"] = object.desc;
  value["geometry"] = geometry_key(object.geometry.kind);
  value["bins"] = object.geometry.bins;
  value["coord_token_indices"] = object.coord_token_indices;
  return value;
}

class ParseStage : public Stage {
 public:
  explicit ParseStage(const StageOptions& options)
      : tokenizer_(Tokenizer::load(options.model_dir)),
        coord_vocab_(CoordVocab::from(*tokenizer_, options.model_dir)),
        stop_ids_(read_stop_ids(options.model_dir, *tokenizer_)) {}

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::vector<TokenId> response_token_ids = fields.integers("response_token_ids");
    fields.finish();
    const ParsedRollout parsed =
        parse_rollout(response_token_ids, *tokenizer_, coord_vocab_, stop_ids_);
    Json answer;
    answer["response_token_ids"] = parsed.response_token_ids;
    answer["prefix_token_ids"] = parsed.prefix_token_ids;
    answer["prefix_text"] = parsed.prefix_text;
    answer["objects"] = Json::array();
    for (const ParsedObject& object : parsed.objects)
      answer["objects"].push_back(object_json(object));
    answer["max_object_index"] = parsed.max_object_index ? Json(*parsed.max_object_index) : Json();
    answer["dropped_invalid"] = parsed.dropped_invalid;
    answer["dropped_ambiguous"] = 0;
    answer["status"] = parse_status_name(parsed.status);
    return answer;
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  CoordVocab coord_vocab_;
  std::vector<TokenId> stop_ids_;
};

}  // namespace

std::unique_ptr<Stage> make_parse_stage(const StageOptions& options) {
  return std::make_unique<ParseStage>(options);
}

}  // namespace rematch
