#include "program/config/rules.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace rematch {
namespace {

const std::string kVariant = "custom.trainer_variant";

void check_required_keys(Draft& config) {
  for (const KeySpec& spec : schema()) {
    if (!spec.required) continue;
    const Node* node = config.find_written(spec.path);
    if (!node && !config.is_null(spec.path)) continue;
    if (node && !node->is_null() && !(node->is_scalar() && python_strip(node->scalar).empty()))
      continue;
    config.problems.push_back({fmt::format("`{}` is required", spec.path),
                               node ? node->origin.text() : config.path,
                               node ? "it is empty" : "neither a file nor --set sets it",
                               fmt::format("add it: {}", spec.help)});
  }
}

void apply_debug_keys(Draft& config) {
  if (!config.boolean("debug.enabled")) return;
  for (const auto& [from, to] : {std::pair{"debug.output_dir", "training.output_dir"},
                                 std::pair{"debug.train_sample_limit", "custom.train_sample_limit"},
                                 std::pair{"debug.val_sample_limit", "custom.val_sample_limit"}}) {
    if (config.is_given(from))
      config.derive(to, config.json(from), fmt::format("{} ({})", from, config.origin(from)));
  }
}

}  // namespace

void Draft::problem(std::string error, const std::string& key, std::string what, std::string fix) {
  problems.push_back({std::move(error), where(key), std::move(what), std::move(fix)});
}
void Draft::warn(std::string text, const std::string& key) {
  warnings.push_back({std::move(text), where(key)});
}
void Draft::warn_no_effect(const std::string& key, const std::string& reason) {
  warn(fmt::format("`{}` has no effect: {}", key, reason), key);
}

const Node* Draft::find_written(const std::string& key) const {
  const Node* node = &root;
  for (const std::string& part : split(key, '.')) {
    if (node) node = node->find(part);
  }
  return node;
}

TrainerVariant Draft::variant() const {
  return is_null(kVariant) ? TrainerVariant::kSft : *value_of<TrainerVariant>(text(kVariant));
}
bool Draft::has_rollout_section() const {
  const Node* section = find_written(kRolloutMatching);
  return section ? !section->is_null() : rollouts;
}
bool Draft::variant_is_known() const {
  const Node* node = find_written(kVariant);
  return !node || node->is_null() || is_given(kVariant);
}

void apply_rules(Draft& config) {
  check_required_keys(config);
  apply_debug_keys(config);
  apply_model_rules(config);
  apply_training_rules(config);
  apply_deepspeed_rules(config);
  apply_rollout_rules(config);
  apply_evaluation_rules(config);
}

}  // namespace rematch
