#pragma once
#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/flow/object_json.h"
#include "base/json.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/match/matcher.h"
#include "learn/estep/teach/target_policy.h"
#include "model/text/tokenizer.h"
#include "tools/stages/stage.h"

namespace rematch {

/// Reads a list of `{bbox_2d|poly}` as the `match` stage takes them: flat or nested, integers or
/// coord-token strings. Integers beyond 0..999 are accepted; matching clamps them. A `desc` is
/// ignored.
/// @throws UserError (data) naming list, object and field
Objects read_geometries(const Json& list, const std::string& what);

/// Reads a list of `{desc, bbox_2d|poly}` by the rules of BEHAVIOUR 2.2: desc trimmed, not blank,
/// without newline, tab and texts of added tokens; values 0..999.
/// @param forbidden  null: accept any desc that is not blank, since a model may write it
/// @throws UserError (data) naming list, object and field
Objects read_scene_objects(const Json& list, const std::string& what,
                           const ForbiddenTexts* forbidden);

/// Base of the stages that parse answers: loads the tokenizer, the answer format and the stop ids.
class AnswerStage : public Stage {
 public:
  /// @throws UserError
  explicit AnswerStage(const StageOptions& options);

 protected:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const AnswerFormat> format_;
  std::vector<TokenId> stop_ids_;
};

/// Reads `resized_px` ([width, height] of the image as the model sees it); zeros when it is absent.
/// @throws UserError (data)
std::array<int, 2> read_resized_px(JsonFields& fields);

/// Reads the matching options; absent ones keep their defaults.
/// @throws UserError
MatchSettings read_match_options(JsonFields& options);

/// Converts a segment to the JSON of `rematch stage segment` and `rematch rollout`.
Json segment_json(const SegmentResult& result);

}  // namespace rematch
