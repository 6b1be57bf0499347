// Rules for required keys and for `debug`.
#include <fmt/core.h>

#include <utility>

#include "base/text.h"
#include "program/config/draft.h"

namespace rematch {
namespace {

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
      config.derive(to, config.value(from), fmt::format("{} ({})", from, config.origin(from)));
  }
}

}  // namespace

void apply_rules(Draft& config) {
  check_required_keys(config);
  apply_debug_keys(config);
  apply_model_rules(config);
  apply_training_rules(config);
  apply_deepspeed_rules(config);
  apply_rollout_rules(config);
  apply_evaluation_rules(config);
  apply_shard_rules(config);
}

}  // namespace rematch
