#pragma once
#include <string>
#include <vector>

#include "base/settings/settings.h"
#include "program/config/values.h"

namespace rematch {

/// A configuration during the rules between keys, which derive values and add problems and
/// warnings.
struct Draft : Values {
  const Node& root;    ///< merged tree of the files and overrides
  std::string path;    ///< path of the file, as the user gave it
  int world_size = 1;  ///< number of ranks
  std::vector<Problem>& problems;
  std::vector<Warning>& warnings;
  bool rollouts = false;  ///< as Settings::rollouts, without a section

  /// Appends a problem or a warning where `key` was written.
  void problem(std::string error, const std::string& key, std::string what, std::string fix);
  void warn(std::string text, const std::string& key);
  void warn_no_effect(const std::string& key, const std::string& reason);

  /// Finds the value of a key or section in the tree; nullptr if there is none.
  const Node* find_written(const std::string& path) const;
  TrainerVariant variant() const;
  bool is_stage_2() const { return variant() == TrainerVariant::kRolloutMatching; }
  bool has_rollout_section() const;
  /// True if evaluations measure rollouts.
  bool rolls_out() const { return is_stage_2() || has_rollout_section(); }
  /// False if `custom.trainer_variant` was refused: rules that depend on the stage are then
  /// skipped.
  bool variant_is_known() const;
};

/// Applies all rules between keys: required keys, fallbacks from one key to another,
/// contradictions.
void apply_rules(Draft& config);

// The rules, one file per subject.
void apply_model_rules(Draft& config);
void apply_training_rules(Draft& config);
/// Derives `training.zero_stage` from the ZeRO stage of a `deepspeed` section.
void apply_deepspeed_rules(Draft& config);
void apply_rollout_rules(Draft& config);
void apply_evaluation_rules(Draft& config);

}  // namespace rematch
