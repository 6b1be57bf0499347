#pragma once
#include <span>
#include <vector>

#include "flow/parsed.h"

namespace rematch {

/// Confidence in an object of an answer (BEHAVIOUR 20.2): exp(sum of the log-probabilities of its
/// text tokens + mean over its coordinates of their log-probability).
/// @param token_logprobs  of the whole answer
/// @param entry           the tokens that belong to the object
/// @param coord_tokens    the tokens of each coordinate; the others of the entry are its text
/// @return in (0, 1], or 0 where the probability is below what a double holds
double object_score(std::span<const float> token_logprobs, const TokenSpan& entry,
                    std::span<const TokenSpan> coord_tokens);

/// The score of every object of an answer; empty when the backend gave no log-probabilities.
std::vector<double> object_scores(const std::vector<ParsedObject>& objects,
                                  const std::vector<float>& token_logprobs);

}  // namespace rematch
