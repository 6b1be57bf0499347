#pragma once
#include <map>
#include <string>
#include <vector>

namespace rematch::test {

/// Trains two steps of stage 2 on the golden scenes in this process, so that what this program
/// added to the tables is there.
/// @param rollout_matching  keys of that section as flow YAML, e.g. "target_policy: toy,
/// max_new_tokens: 8"
/// @param custom  keys of the section `custom`, as flow YAML
/// @return the lines of logging.jsonl, numbers by name
std::vector<std::map<std::string, double>> trained_with(const std::string& rollout_matching,
                                                        const std::string& custom = "");

}  // namespace rematch::test
