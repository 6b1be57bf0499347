// `rematch stage segment`: one rollout and its ground truth in, the teacher-forced segment out.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/choices.h"
#include "base/error.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/segment_checks.h"
#include "learn/estep/teach/target_policy.h"
#include "model/text/tokenizer.h"
#include "tools/stages/scene_input.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

struct SegmentStageOptions {
  MatchSettings match;
  TargetSettings target;
  int global_max_length = 0;
};

/// The value of a named choice; its default when the key is absent.
template <NamedEnum E>
void read_choice(JsonFields& reader, const std::string& key, E& field) {
  if (!reader.has(key)) return;
  const std::string name = reader.text(key);
  const std::optional<E> value = value_of<E>(name);
  if (!value) refuse_choice(name, "value", "options." + key, "", all_names<E>());
  field = *value;
}

SegmentStageOptions read_options(JsonFields reader, const AnswerFormat& format) {
  SegmentStageOptions options;
  options.match = read_match_options(reader);
  options.target.ot_cost = ot_cost_from(reader.text_or("ot_cost", "l2"));
  options.target.ot_epsilon = reader.number_or("ot_epsilon", options.target.ot_epsilon);
  options.target.ot_iters = reader.integer_or("ot_iters", options.target.ot_iters);
  options.target.policy = reader.text_or("target_policy", format.default_policy());
  read_choice(reader, "rewrite_order", options.target.rewrite_order);
  read_choice(reader, "incomplete_rollouts", options.target.incomplete_rollouts);
  options.global_max_length = reader.integer_or("global_max_length", 0);
  if (reader.has("global_max_length") && options.global_max_length < 1) {
    throw config_error({.error = "global_max_length must be at least 1",
                        .where = "options.global_max_length",
                        .what = fmt::format("{}", options.global_max_length),
                        .fix = "set it to 1 or more, or leave it out for no cap"});
  }
  reader.finish();
  check_target_options(options.target);
  return options;
}

void check_prompt(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (tokenizer.has_token(ids[i])) continue;
    throw data_error({.error = "a prompt has an id without a token",
                      .where = fmt::format("input.prompt_token_ids[{}]", i),
                      .what = fmt::format("{}", ids[i]),
                      .fix = "encode the prompt with the tokenizer of --model"});
  }
}

ForbiddenTexts added_token_texts(const Tokenizer& tokenizer) {
  Strings texts;
  for (const AddedToken& token : tokenizer.added_tokens()) texts.push_back(token.content);
  return ForbiddenTexts(texts);
}

class SegmentStage : public AnswerStage {
 public:
  explicit SegmentStage(const StageOptions& options)
      : AnswerStage(options), added_texts_(added_token_texts(*tokenizer_)) {}

  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    Prompt prompt;
    prompt.token_ids = fields.integers("prompt_token_ids");
    check_prompt(prompt.token_ids, *tokenizer_);
    prompt.where = "input";
    const std::vector<TokenId> response_token_ids = fields.integers("response_token_ids");
    const Objects ground_truth =
        read_scene_objects(fields.at("ground_truth"), "ground_truth", &added_texts_);
    const SegmentStageOptions options = read_options(fields.object_or_empty("options"), *format_);
    prompt.resized_px = read_resized_px(fields);
    fields.finish();

    const ParsedRollout parsed = format_->parse(response_token_ids, stop_ids_, prompt);
    const Matching matching = match_objects(to_scene(parsed.objects), ground_truth, options.match);
    const SegmentResult result =
        build_segment({prompt, parsed, matching, ground_truth}, *format_, options.target);
    check_encoded_len(result.segment, options.global_max_length);
    return segment_json(result);
  }

 private:
  ForbiddenTexts added_texts_;
};

}  // namespace

Json segment_json(const SegmentResult& result) {
  const Segment& segment = result.segment;
  Json answer;
  answer["token_ids"] = segment.token_ids;
  answer["labels"] = segment.labels;
  answer["coord_slots"] = Json::array();
  for (const Slot& slot : segment.slots_of(kCoordSlots)) {
    answer["coord_slots"].push_back(Json::array(
        {slot.position, slot.target, slot.source == SlotSource::kPrefix ? "prefix" : "append"}));
  }
  answer["prompt_len"] = segment.prompt_len;
  answer["prefix_len"] = segment.prefix_len;
  answer["append_len"] = segment.append_len;
  answer["append_text"] = result.append_text;
  answer["pairs"] = result.pairs;
  answer["false_negatives"] = result.false_negatives;
  answer["excluded_from_supervision"] = result.num_excluded;
  answer["encoded_len"] = segment.encoded_len();
  return answer;
}

std::unique_ptr<Stage> make_segment_stage(const StageOptions& options) {
  return std::make_unique<SegmentStage>(options);
}

}  // namespace rematch
