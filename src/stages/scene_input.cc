#include "stages/scene_input.h"

#include "estep/answer/checkpoint_format.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "text/stop_ids.h"

namespace rematch {
namespace {

constexpr double kMaxCoordinate = 1e6;  // far beyond any bin; keeps sums and squares exact

[[noreturn]] void refuse(const std::string& where, const std::string& error,
                         const std::string& what, const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error, .where = where, .what = what, .fix = fix});
}

std::optional<int> coord_token_bin(const std::string& text) {
  constexpr std::string_view kHead = "<|coord_", kTail = "|>";
  if (text.size() <= kHead.size() + kTail.size() || !text.starts_with(kHead) ||
      !text.ends_with(kTail))
    return std::nullopt;
  const char* begin = text.data() + kHead.size();
  const char* end = text.data() + text.size() - kTail.size();
  int bin = 0;
  const auto [stop, error] = std::from_chars(begin, end, bin);
  const bool canonical = error == std::errc() && stop == end && bin >= 0 && bin < kNumBins &&
                         (*begin != '0' || end - begin == 1);
  return canonical ? std::optional<int>(bin) : std::nullopt;
}

int read_coordinate(const Json& value, const std::string& where, bool any_range) {
  if (value.is_string()) {
    if (const auto bin = coord_token_bin(value.get_ref<const std::string&>())) return *bin;
  } else if (value.is_number()) {
    const double number = value.get<double>();
    const bool in_range =
        any_range ? std::abs(number) <= kMaxCoordinate : number >= 0 && number < kNumBins;
    if (number == std::floor(number) && in_range) return static_cast<int>(number);
  }
  refuse(where, "a coordinate is not a bin", shown_json(value),
         "pass an integer 0..999 or \"<|coord_k|>\"; a pixel x becomes min(999, round(x / width * "
         "1000)), a pixel y the same with height");
}

Geometry read_geometry(GeometryKind kind, const Json& value, const std::string& where,
                       bool any_range) {
  if (!value.is_array())
    refuse(where, "a geometry is not a list", shown_json(value), "pass a list of coordinates");
  Geometry geometry{kind, {}};
  const bool nested = !value.empty() && value[0].is_array();
  for (const Json& item : value) {
    if (!nested) {
      geometry.bins.push_back(read_coordinate(item, where, any_range));
    } else if (item.is_array() && item.size() == 2) {
      for (const Json& coordinate : item)
        geometry.bins.push_back(read_coordinate(coordinate, where, any_range));
    } else {
      refuse(where, "a vertex is not a pair", shown_json(item),
             "pass [x, y] pairs, or one flat list");
    }
  }
  const size_t count = geometry.bins.size();
  if (kind == GeometryKind::kBbox2d && (count != 4 || nested)) {
    refuse(where, "a bbox_2d must have four values", shown_json(value), "pass [x1, y1, x2, y2]");
  }
  if (kind == GeometryKind::kPoly && count % 2 != 0) {
    refuse(where, "a poly needs an x and a y for each vertex", fmt::format("{} values", count),
           "pass x and y of three or more vertices");
  }
  if (kind == GeometryKind::kPoly && count < 6) {
    refuse(where, "a poly must have at least three vertices", fmt::format("{} values", count),
           "pass x and y of three or more vertices");
  }
  return geometry;
}

Geometry read_object_geometry(const Json& object, const std::string& where, bool any_range) {
  if (!object.is_object())
    refuse(where, "an object is not a JSON object", shown_json(object),
           "pass {\"bbox_2d\": [...]} or {\"poly\": [...]}");
  for (const auto& member : object.items()) {
    if (member.key() == "desc" || member.key() == "bbox_2d" || member.key() == "poly") continue;
    refuse(where + "." + member.key(), "unknown field", "known: desc, bbox_2d, poly", "remove it");
  }
  const bool has_box = object.contains("bbox_2d"), has_poly = object.contains("poly");
  if (has_box == has_poly) {
    refuse(where, "an object needs exactly one geometry",
           has_box ? "bbox_2d and poly" : "neither bbox_2d nor poly", "pass bbox_2d or poly");
  }
  const GeometryKind kind = has_box ? GeometryKind::kBbox2d : GeometryKind::kPoly;
  return read_geometry(kind, object[geometry_key(kind)],
                       fmt::format("{}.{}", where, geometry_key(kind)), any_range);
}

std::string read_desc(const Json& object, const std::string& where, const Tokenizer* tokenizer) {
  const auto found = object.find("desc");
  if (found == object.end() || !found->is_string()) {
    refuse(where + ".desc", "an object needs a desc",
           found == object.end() ? "absent" : shown_json(*found), "pass a string");
  }
  const std::string desc = python_strip(found->get_ref<const std::string&>());
  if (desc.empty())
    refuse(where + ".desc", "a desc is blank", shown_json(*found), "describe the object");
  if (tokenizer == nullptr) return desc;
  if (desc.find_first_of("\n\r\t") != std::string::npos) {
    refuse(where + ".desc", "a desc contains a newline or tab", shown_json(*found),
           "put it on one line");
  }
  if (std::any_of(desc.begin(), desc.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    refuse(where + ".desc", "a desc contains a control character", shown_json(*found), "remove it");
  }
  for (const AddedToken& token : tokenizer->added_tokens()) {
    if (desc.find(token.content) == std::string::npos) continue;
    refuse(where + ".desc", "a desc contains the text of an added token", token.content,
           "remove it from the desc");
  }
  return desc;
}

void need_list(const Json& list, const std::string& what) {
  if (!list.is_array()) refuse(what, "not a list of objects", shown_json(list), "pass a list");
}

}  // namespace

std::vector<Geometry> read_geometries(const Json& list, const std::string& what) {
  need_list(list, what);
  std::vector<Geometry> geometries;
  for (size_t i = 0; i < list.size(); ++i)
    geometries.push_back(read_object_geometry(list[i], fmt::format("{}[{}]", what, i), true));
  return geometries;
}

std::vector<SceneObject> read_scene_objects(const Json& list, const std::string& what,
                                            const Tokenizer* tokenizer) {
  need_list(list, what);
  std::vector<SceneObject> objects;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", what, i);
    Geometry geometry = read_object_geometry(list[i], where, false);
    objects.push_back({read_desc(list[i], where, tokenizer), std::move(geometry)});
  }
  return objects;
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
  throw UserError(ErrorKind::kData, {.error = "the size of the resized image is invalid",
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

Json pairs_json(const std::vector<std::pair<int, int>>& pairs) {
  Json list = Json::array();
  for (const auto& [prediction, ground_truth] : pairs)
    list.push_back(Json::array({prediction, ground_truth}));
  return list;
}

}  // namespace rematch
