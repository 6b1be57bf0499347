#include "learn/estep/answer/object_score.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rematch {

double object_score(std::span<const float> token_logprobs, const TokenSpan& entry,
                    std::span<const TokenSpan> coord_tokens) {
  REMATCH_CHECK(entry.begin >= 0 && static_cast<size_t>(entry.end) <= token_logprobs.size(),
                "an entry lies in its answer");
  double text = 0, coords = 0;
  for (int i = entry.begin; i < entry.end; ++i) {
    const bool is_text = std::ranges::none_of(
        coord_tokens, [i](const TokenSpan& coord) { return i >= coord.begin && i < coord.end; });
    if (is_text) text += token_logprobs[i];
  }
  for (const TokenSpan& coord : coord_tokens) {
    for (int i = coord.begin; i < coord.end; ++i) coords += token_logprobs[i];
  }
  if (!coord_tokens.empty()) coords /= coord_tokens.size();
  return std::min(1.0, std::exp(text + coords));  // rounding may lift a log-probability above 0
}

std::vector<double> object_scores(const std::vector<ParsedObject>& objects,
                                  const std::vector<float>& token_logprobs) {
  std::vector<double> scores;
  if (token_logprobs.empty()) return scores;
  for (const ParsedObject& object : objects)
    scores.push_back(object_score(token_logprobs, object.entry, object.coord_tokens));
  return scores;
}

}  // namespace rematch
