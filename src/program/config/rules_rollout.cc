// Rules for packing, rollouts, targets and coordinate losses.
#include <fmt/core.h>

#include "base/settings/loss.h"
#include "learn/estep/answer/answer_format.h"
#include "program/config/draft.h"

namespace rematch {
namespace {

std::string rollout_key(const std::string& name) { return kRolloutMatching + "." + name; }

/// In carry mode a whole micro-batch enters the buffer at once, so it must not be larger.
void check_carry_buffer(Draft& config) {
  const std::string buffer = "training.packing_buffer",
                    batch = "training.per_device_train_batch_size";
  if (!config.is_stage_2() || config.text(rollout_key("post_rollout_pack_scope")) != "micro" ||
      config.integer(batch) <= config.integer(buffer))
    return;
  config.problem(
      "`training.packing_buffer` is smaller than a micro-batch", buffer,
      fmt::format("{} segments enter the buffer together (`{}`), but it holds at most {}",
                  config.integer(batch), batch, config.integer(buffer)),
      fmt::format("lower `{}`, raise `{}`, or set `post_rollout_pack_scope: window`", batch,
                  buffer));
}

void check_packing(Draft& config) {
  const std::string key = "training.packing";
  if (!config.boolean(key)) return;
  if (config.is_null("global_max_length")) {
    config.problem("`training.packing: true` needs `global_max_length`", key,
                   "it limits the tokens of a packed row",
                   "set `global_max_length`, or `training.packing: false`");
  }
  if (config.is_stage_2() && !config.boolean("training.packing_drop_last")) {
    config.problem("`training.packing_drop_last: false` is refused in stage 2",
                   "training.packing_drop_last",
                   "stage 2 takes no extra steps at the end to empty the carry buffer",
                   "set `training.packing_drop_last: true`");
  }
  check_carry_buffer(config);
}

void check_rollout_buffer(Draft& config) {
  const std::string enabled = rollout_key("rollout_buffer.enabled"),
                    uses = rollout_key("rollout_buffer.m_steps");
  if (!config.boolean(enabled)) {
    if (config.is_given(uses) && config.integer(uses) > 1)
      config.warn_no_effect(uses, fmt::format("`{}` is false", enabled));
  } else if (!config.is_stage_2()) {
    config.warn(fmt::format("`{}` has no effect in stage 1", enabled), enabled);
  }
}

void check_offload(Draft& config) {
  const std::string enabled = rollout_key("offload.enabled"),
                    model = rollout_key("offload.offload_model"),
                    optimizer = rollout_key("offload.offload_optimizer");
  if (config.boolean(enabled) && !config.boolean(model) && !config.boolean(optimizer))
    config.warn_no_effect(enabled, fmt::format("`{}` and `{}` are false", model, optimizer));
}

/// Formats without coord tokens cannot append bins and have no coordinate losses.
void apply_answer_format_rules(Draft& config) {
  const std::string key = "custom.answer_format", policy = rollout_key("target_policy"),
                    losses = kCoordLosses + ".enabled";
  if (config.is_null(key)) return;
  const std::string format = config.text(key);
  if (answer_formats().find(format).has_coord_tokens) return;
  if (!config.is_given(policy)) config.derive(policy, default_target_policy(false), key);
  if (!config.is_given(losses)) config.derive(losses, false, key);
  if (config.text(policy) == "append") {
    config.problem(fmt::format("`target_policy: append` is not possible with `{}`", format), policy,
                   "it supervises the coord tokens of the prefix, and this format writes digits",
                   "set `target_policy: rewrite`, or remove the key");
  }
  if (config.boolean(losses)) {
    config.problem(fmt::format("the coordinate losses are not possible with `{}`", format), losses,
                   "they need one token for each bin, and this format writes digits",
                   "set it to false: cross-entropy on the digits teaches the coordinates");
  }
}

void apply_target_rules(Draft& config) {
  const std::string policy = rollout_key("target_policy"), order = rollout_key("rewrite_order"),
                    share = rollout_key("rollout_share");
  const std::string data_order = "custom.object_ordering", noise = "custom.coord_input_noise";
  for (const std::string& key : {order, rollout_key("incomplete_rollouts")}) {
    if (config.text(policy) == "append" && config.is_changed(key))
      config.warn_no_effect(key, fmt::format("`{}` is append", policy));
  }
  if (config.is_null(order))
    config.derive(order, config.text(data_order) == "random" ? "rollout" : "truth", data_order);
  if (config.text(order) == "own" && config.text(data_order) != "own") {
    config.problem("`rewrite_order: own` needs `custom.object_ordering: own`", order,
                   "it inserts missing objects by the order of the answers",
                   "set `custom.object_ordering: own`, or `rewrite_order: rollout`");
  }
  if (config.number(noise) > 0 && config.is_stage_2() && config.number(share) >= 1)
    config.warn_no_effect(noise, fmt::format("every window has rollouts (`{}`)", share));
}

void derive_coord_losses(Draft& config) {
  const std::string enabled = kCoordLosses + ".enabled";
  for (const CoordLossKey& loss : kCoordLossKeys) {
    const std::string own = rollout_key(loss.key.name),
                      shared = kCoordLosses + "." + loss.shared_name;
    if (loss.is_weight && !config.boolean(enabled) && !config.is_given(shared))
      config.derive(shared, 0.0, enabled + ": false");
    if (config.is_null(own)) config.derive(own, config.value(shared), shared);
  }
}

}  // namespace

void apply_rollout_rules(Draft& config) {
  check_packing(config);
  check_rollout_buffer(config);
  check_offload(config);
  apply_answer_format_rules(config);
  apply_target_rules(config);
  derive_coord_losses(config);
}

}  // namespace rematch
