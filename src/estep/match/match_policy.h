#pragma once
#include <string>
#include <vector>

#include "base/choices.h"
#include "estep/match/matcher.h"
#include "flow/parsed.h"
#include "flow/sample.h"

namespace rematch {

/// A way of deciding which prediction stands for which ground truth. Indices of the answer are
/// positions in the two lists.
using MatchPolicy = Matching (*)(const std::vector<SceneObject>& predictions,
                                 const std::vector<SceneObject>& ground_truth,
                                 const MatchSettings& options);

/// A row of the table of match policies: a new policy is its file and its row.
struct MatchPolicyRow {
  std::string name;
  std::string meaning;
  MatchPolicy match = nullptr;
};

/// Values of `match_policy`.
Choices<MatchPolicyRow>& match_policies();

/// The policy that `options` names, applied. @throws UserError (config) for an unknown policy or
/// options out of range
Matching match_objects(const std::vector<SceneObject>& predictions,
                       const std::vector<SceneObject>& ground_truth, const MatchSettings& options);

}  // namespace rematch
