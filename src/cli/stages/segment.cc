// `rematch stage segment`: one rollout and its ground truth in, the teacher-forced segment out.
#include <nlohmann/json.hpp>

#include "cli/stage.h"
#include "cli/stages/scene_input.h"
#include "estep/match/matcher.h"
#include "text/stop_ids.h"
#include "estep/parse/strict_parser.h"
#include "estep/target/segment_checks.h"
#include "estep/target/target_builder.h"
#include "text/tokenizer.h"

namespace rematch {
namespace {

struct SegmentStageOptions {
  MatchSettings match;
  TargetSettings target;
  int global_max_length = 0;
};

SegmentStageOptions read_options(JsonFields reader) {
  SegmentStageOptions options;
  options.match = read_match_options(reader);
  options.target.ot_cost = ot_cost_from(reader.text_or("ot_cost", "l2"));
  options.target.ot_epsilon = reader.number_or("ot_epsilon", options.target.ot_epsilon);
  options.target.ot_iters = reader.integer_or("ot_iters", options.target.ot_iters);
  options.global_max_length = reader.integer_or("global_max_length", 0);
  reader.finish();
  check_target_options(options.target);
  return options;
}

Json segment_json(const SegmentResult& result) {
  const Segment& segment = result.segment;
  Json answer;
  answer["token_ids"] = segment.token_ids;
  answer["labels"] = segment.labels;
  answer["coord_slots"] = Json::array();
  for (const Slot& slot : segment.slots_of(kCoordSlots)) {
    answer["coord_slots"].push_back(Json::array({slot.position, slot.target, slot.source == SlotSource::kPrefix ? "prefix" : "append"}));
  }
  answer["prompt_len"] = segment.prompt_len;
  answer["prefix_len"] = segment.prefix_len;
  answer["append_len"] = segment.append_len;
  answer["append_text"] = result.append_text;
  answer["pairs"] = pairs_json(result.pairs);
  answer["false_negatives"] = result.false_negatives;
  answer["excluded_from_supervision"] = result.num_excluded;
  answer["encoded_len"] = segment.encoded_len();
  return answer;
}

class SegmentStage : public Stage {
 public:
  explicit SegmentStage(const StageOptions& options)
      : tokenizer_(Tokenizer::load(options.model_dir)),
        coord_vocab_(CoordVocab::from(*tokenizer_, options.model_dir)),
        vocab_(AnswerVocab::from(*tokenizer_, coord_vocab_, options.model_dir)),
        stop_ids_(read_stop_ids(options.model_dir, *tokenizer_)) {}

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    Prompt prompt;
    prompt.token_ids = fields.integers("prompt_token_ids");
    prompt.where = "input";
    const std::vector<TokenId> response_token_ids = fields.integers("response_token_ids");
    const std::vector<SceneObject> ground_truth = read_scene_objects(fields.at("ground_truth"), "ground_truth", *tokenizer_);
    const SegmentStageOptions options = read_options(fields.object_or_empty("options"));
    fields.finish();

    const ParsedRollout parsed = parse_rollout(response_token_ids, *tokenizer_, coord_vocab_, stop_ids_);
    const Matching matching = match(geometries_of(parsed.objects), geometries_of(ground_truth), options.match);
    const SegmentResult result = build_segment(prompt, parsed, matching, ground_truth, vocab_, options.target);
    check_encoded_len(result.segment, options.global_max_length);
    return segment_json(result);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  CoordVocab coord_vocab_;
  AnswerVocab vocab_;
  std::vector<TokenId> stop_ids_;
};

}  // namespace

std::unique_ptr<Stage> make_segment_stage(const StageOptions& options) { return std::make_unique<SegmentStage>(options); }

}  // namespace rematch
