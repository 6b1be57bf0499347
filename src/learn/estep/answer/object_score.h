#pragma once
#include <span>
#include <vector>

#include "base/flow/parsed.h"

namespace rematch {

/// Confidence in an object of an answer (BEHAVIOUR 20.2): exp(sum of the log-probabilities of its
/// text tokens + mean over its coordinates of their log-probability).
/// @param token_logprobs  log-probabilities of the whole answer
/// @param entry           tokens of the object
/// @param coord_tokens    tokens of each coordinate; the rest of the entry is its text
/// @return in (0, 1], or 0 when the probability underflows a double
double object_score(std::span<const float> token_logprobs, const TokenSpan& entry,
                    std::span<const TokenSpan> coord_tokens);

/// The score of every object of an answer; empty when the backend gave no log-probabilities.
std::vector<double> object_scores(const std::vector<ParsedObject>& objects,
                                  const std::vector<float>& token_logprobs);

}  // namespace rematch
