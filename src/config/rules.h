#pragma once
#include <string>
#include <vector>

#include "config/values.h"
#include "settings/settings.h"

namespace rematch {

/// A configuration while the rules between its keys are applied: rules derive values and add
/// findings.
struct Draft : Values {
  const Node& root;    ///< the tree as written
  std::string path;    ///< of the file, as the user gave it
  int world_size = 1;  ///< ranks
  std::vector<Problem>& problems;
  std::vector<Warning>& warnings;

  /// Appends a problem or a warning where `key` was written.
  void problem(std::string error, const std::string& key, std::string what, std::string fix);
  void warn(std::string text, const std::string& key);
  void warn_no_effect(const std::string& key, const std::string& reason);

  /// The value written for a key or section; nullptr when there is none.
  const Node* written(const std::string& path) const;
  TrainerVariant variant() const;
  bool is_stage_2() const { return variant() == TrainerVariant::kRolloutMatching; }
  bool has_rollout_section() const;
  /// Evaluations measure rollouts.
  bool rolls_out() const { return is_stage_2() || has_rollout_section(); }
  /// False when the key of the variant holds something that was refused: rules that depend on the
  /// stage would only add noise.
  bool variant_is_known() const;
};

/// Applies all rules between keys: required keys, fallbacks from one key to another,
/// contradictions.
void apply_rules(Draft& config);

// The rules, one file for each subject.
void apply_model_rules(Draft& config);
void apply_training_rules(Draft& config);
/// The ZeRO stage of a `deepspeed` section stands for `training.zero_stage`.
void apply_deepspeed_rules(Draft& config);
void apply_rollout_rules(Draft& config);
void apply_evaluation_rules(Draft& config);

}  // namespace rematch
