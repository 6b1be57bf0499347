#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "base/flow/token.h"

namespace rematch {

enum class ParseStatus {
  kComplete,   ///< the top-level object was closed
  kTruncated,  ///< input ended first
  kMalformed,  ///< a violation of strict JSON; reading stopped there
};

inline const char* parse_status_name(ParseStatus status) {
  return status == ParseStatus::kComplete    ? "complete"
         : status == ParseStatus::kTruncated ? "truncated"
                                             : "malformed";
}

/// Tokens [begin, end) of a response.
struct TokenSpan {
  int begin = 0;
  int end = 0;

  bool operator==(const TokenSpan&) const = default;
};

/// A valid object of an answer.
struct ParsedObject {
  std::string key;    ///< coord_tokens: as written after unescaping, e.g. "object_3"
  int64_t index = 0;  ///< coord_tokens: the number in the key
  std::string desc;   ///< trimmed as Python's str.strip does
  Geometry geometry;
  /// the numbers as written, one for each bin, if the format writes digits; else empty
  std::vector<int> written;
  /// from the end of the previous complete entry (0 for the first) to the end of this one
  TokenSpan entry;
  /// the tokens that write each bin, in response_token_ids; a token may also hold punctuation
  std::vector<TokenSpan> coord_tokens;
};

/// The objects without their token spans.
inline Objects to_scene(const std::vector<ParsedObject>& objects) {
  Objects scene;
  for (const ParsedObject& object : objects) scene.push_back({object.desc, object.geometry});
  return scene;
}

/// A rollout read strictly (BEHAVIOUR 5 and 19).
struct ParsedRollout {
  std::vector<TokenId> response_token_ids;  ///< cut at the first stop id
  /// coord_tokens: the kept part, up to the end of the last complete entry
  std::vector<TokenId> prefix_token_ids;
  std::string prefix_text;  ///< coord_tokens: prefix_text + "}" is always valid JSON
  std::vector<ParsedObject> objects;
  /// coord_tokens: over every complete entry keyed object_n, valid or not
  std::optional<int64_t> max_object_index;
  int dropped_invalid = 0;
  ParseStatus status = ParseStatus::kMalformed;
};

/// True for an answer that gives no object though it is not an empty scene: it broke off, broke the
/// format, or has only entries of another form.
/// @param answer  a ParsedRollout, or another type with its fields
template <typename Answer>
bool is_unread(const Answer& answer) {
  return answer.objects.empty() &&
         (answer.status != ParseStatus::kComplete || answer.dropped_invalid > 0);
}

/// Pairs of predictions and ground truths (BEHAVIOUR 6). Indices are positions in the two lists
/// given to the matcher.
struct Matching {
  std::vector<std::pair<int, int>> pairs;  ///< (prediction, ground truth), ascending by prediction
  std::vector<int> false_positives;        ///< predictions without a pair, ascending
  std::vector<int> false_negatives;        ///< ground truths without a pair, ascending
  int gating_rejections = 0;               ///< candidates below maskiou_gate
  double matched_maskiou_sum = 0.0;        ///< over pairs
};

/// The geometries of a list of objects (SceneObject or ParsedObject), in order.
template <typename Object>
std::vector<Geometry> get_geometries(const std::vector<Object>& objects) {
  std::vector<Geometry> geometries;
  geometries.reserve(objects.size());
  for (const Object& object : objects) geometries.push_back(object.geometry);
  return geometries;
}

}  // namespace rematch
