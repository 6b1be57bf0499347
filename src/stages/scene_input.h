#pragma once
#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "estep/answer/answer_format.h"
#include "estep/match/matcher.h"
#include "flow/sample.h"
#include "stages/stage.h"
#include "text/tokenizer.h"

namespace rematch {

/// Reads a list of `{bbox_2d|poly}` as the `match` stage takes them: flat or nested, integers or
/// coord-token strings. Integers beyond 0..999 are accepted; matching clamps them. A `desc` is
/// allowed and not used.
/// @throws UserError (data) naming list, object and field
std::vector<Geometry> read_geometries(const Json& list, const std::string& what);

/// Reads a list of `{desc, bbox_2d|poly}` by the rules of BEHAVIOUR 2.2: desc trimmed, not blank,
/// without newline, tab and texts of added tokens; values 0..999.
/// @param tokenizer  null: a desc is any text that is not blank, as a model may write it
/// @throws UserError (data) naming list, object and field
std::vector<SceneObject> read_scene_objects(const Json& list, const std::string& what,
                                            const Tokenizer* tokenizer);

/// The answer format of a stage. @throws UserError
std::unique_ptr<const AnswerFormat> stage_format(const StageOptions& options,
                                                 std::shared_ptr<const Tokenizer> tokenizer);

/// Reads `resized_px` ([width, height] of the image as the model sees it); zeros when it is absent.
/// @throws UserError (data)
std::array<int, 2> read_resized_px(JsonFields& fields);

/// Reads the matching options that are present; the rest keep their defaults. @throws UserError
MatchSettings read_match_options(JsonFields& options);

/// The lists of a Matching that the `match` and `segment` stages show.
Json pairs_json(const std::vector<std::pair<int, int>>& pairs);

}  // namespace rematch
