// `rematch stage match`: geometries in, pairs out.
#include <nlohmann/json.hpp>

#include "learn/estep/match/match_policy.h"
#include "tools/stages/scene_input.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

class MatchStage : public Stage {
 public:
  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const Objects predictions = read_geometries(fields.at("predictions"), "predictions");
    const Objects ground_truth = read_geometries(fields.at("ground_truth"), "ground_truth");
    JsonFields options = fields.object_or_empty("options");
    fields.finish();
    const MatchSettings match_options = read_match_options(options);
    options.finish();

    const Matching matching = match_objects(predictions, ground_truth, match_options);
    Json answer;
    answer["pairs"] = matching.pairs;
    answer["false_positives"] = matching.false_positives;
    answer["false_negatives"] = matching.false_negatives;
    answer["gating_rejections"] = matching.gating_rejections;
    answer["matched_maskiou_sum"] = matching.matched_maskiou_sum;
    return answer;
  }
};

}  // namespace

std::unique_ptr<Stage> make_match_stage(const StageOptions&) {
  return std::make_unique<MatchStage>();
}

}  // namespace rematch
