#pragma once
#include <string>
#include <vector>

#include "base/choices.h"
#include "base/flow/parsed.h"
#include "base/flow/sample.h"
#include "learn/estep/match/matcher.h"

namespace rematch {

/// Pairs predictions with ground truths. The indices of the result are positions in the two lists.
using MatchPolicy = Matching (*)(const Objects& predictions, const Objects& ground_truth,
                                 const MatchSettings& options);

/// An entry of the table of match policies. A new policy needs its file and its entry.
struct MatchPolicyRow {
  std::string name;
  std::string meaning;
  MatchPolicy match = nullptr;
};

/// Values of `match_policy`.
Choices<MatchPolicyRow>& match_policies();

/// Applies the policy of `options`.
/// @throws UserError (config) for an unknown policy or options out of range
Matching match_objects(const Objects& predictions, const Objects& ground_truth,
                       const MatchSettings& options);

}  // namespace rematch
