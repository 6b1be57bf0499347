#pragma once
#include <string>
#include <vector>

#include "config/source.h"
#include "config/values.h"

namespace rematch {

/// Inputs of the rules between keys in addition to the values.
struct RuleContext {
  const Source& source;
  std::string config_path;  ///< as the user gave it
  int world_size = 1;       ///< ranks
};

/// Applies the rules between keys: required keys, fallbacks from one key to another,
/// contradictions. Derived values are written into `values` with their origin; every contradiction
/// is appended to `problems`.
void apply_cross_rules(Values& values, const RuleContext& context, std::vector<Problem>& problems,
                       std::vector<Warning>& warnings);

/// Those of evaluations that judge a run: what `eval_on_start` and `stop_on_harm` need. After
/// `eval_strategy` is settled.
/// @param rollouts  evaluations roll out
void apply_health_rules(Values& values, bool rollouts, std::vector<Problem>& problems);

/// Those of targets and of what else may stand in for rollouts: the order of entries follows from
/// the data; keys without effect are told.
void apply_target_rules(Values& values, bool stage_2, std::vector<Warning>& warnings);

/// Those of other programs' sections: the ZeRO stage of `deepspeed` stands for
/// `training.zero_stage`. @param root  the tree as written
void apply_deepspeed_rules(Values& values, const Node& root, std::vector<Problem>& problems);

}  // namespace rematch
