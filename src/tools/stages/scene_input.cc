#include "tools/stages/scene_input.h"

#include "learn/estep/answer/checkpoint_format.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_fields.h"
#include "model/text/stop_ids.h"

namespace rematch {
namespace {

// The geometry of an object, once no unknown field has been found.
Geometry read_object(const Json& object, const std::string& where, bool allow_beyond) {
  static const JsonOrigin kOrigin{.error = "{} has an invalid value",
                                  .fix = "pass {\"bbox_2d\": [...]} or {\"poly\": [...]}"};
  JsonFields fields(object, kOrigin, where);
  for (const char* known : {"desc", "bbox_2d", "poly"}) fields.find(known);
  fields.finish();
  return read_geometry(object, where, {.allow_beyond = allow_beyond, .allow_inverted = true});
}

// An object of a list, read by `read`(object, its place).
template <typename Read>
auto read_list(const Json& list, const std::string& what, const Read& read) {
  if (!list.is_array()) {
    throw data_error({.error = "not a list of objects",
                      .where = what,
                      .what = show_json(list),
                      .fix = "pass a list"});
  }
  std::vector<decltype(read(list, what))> objects;
  for (size_t i = 0; i < list.size(); ++i)
    objects.push_back(read(list[i], fmt::format("{}[{}]", what, i)));
  return objects;
}

}  // namespace

Objects read_geometries(const Json& list, const std::string& what) {
  return read_list(list, what, [](const Json& object, const std::string& where) {
    return SceneObject{.geometry = read_object(object, where, true)};
  });
}

Objects read_scene_objects(const Json& list, const std::string& what,
                           const ForbiddenTexts* forbidden) {
  return read_list(list, what, [&](const Json& object, const std::string& where) {
    SceneObject found{.geometry = read_object(object, where, false)};
    found.desc = read_desc(object, where);
    if (forbidden != nullptr) check_desc(found.desc, where, forbidden);
    return found;
  });
}

AnswerStage::AnswerStage(const StageOptions& options)
    : tokenizer_(Tokenizer::load(options.model_dir)) {
  const std::optional<std::string> given =
      options.answer_format.empty() ? std::nullopt : std::optional(options.answer_format);
  const std::string name = checkpoint_format(given, options.model_dir, *tokenizer_);
  format_ = make_answer_format(name, tokenizer_, options.model_dir);
  stop_ids_ = read_stop_ids(options.model_dir, *tokenizer_);
}

std::array<int, 2> read_resized_px(JsonFields& fields) {
  if (!fields.has("resized_px")) return {};
  const std::vector<int> sides = fields.integers("resized_px");
  if (sides.size() == 2 && sides[0] > 0 && sides[1] > 0) return {sides[0], sides[1]};
  throw data_error({.error = "the size of the resized image is invalid",
                    .where = "input.resized_px",
                    .what = fmt::format("[{}]", fmt::join(sides, ", ")),
                    .fix = "write [width, height] in pixels, both above 0"});
}

MatchSettings read_match_options(JsonFields& options) {
  MatchSettings match;
  match.policy = options.text_or("match_policy", match.policy);
  match.candidate_top_k = options.integer_or("candidate_top_k", match.candidate_top_k);
  match.maskiou_gate = options.number_or("maskiou_gate", match.maskiou_gate);
  match.maskiou_resolution = options.integer_or("maskiou_resolution", match.maskiou_resolution);
  match.fp_cost = options.number_or("fp_cost", match.fp_cost);
  match.fn_cost = options.number_or("fn_cost", match.fn_cost);
  check_match_options(match);
  return match;
}

}  // namespace rematch
