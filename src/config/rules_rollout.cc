// Rules of packing, rollouts, targets and the losses on coordinates.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "config/rules.h"
#include "estep/answer/answer_format.h"
#include "settings/loss.h"

namespace rematch {
namespace {

std::string rollout(const std::string& name) { return kRolloutMatching + "." + name; }

/// In carry mode every micro-batch joins the buffer at once: one that is larger than the buffer
/// never fits.
void carry_buffer(Draft& config) {
  const std::string buffer = "training.packing_buffer",
                    batch = "training.per_device_train_batch_size";
  if (!config.is_stage_2() || config.text(rollout("post_rollout_pack_scope")) != "micro" ||
      config.integer(batch) <= config.integer(buffer))
    return;
  config.problem("`training.packing_buffer` is smaller than a micro-batch", buffer,
                 fmt::format("{} segments are inserted together (`{}`), but at most {} may wait",
                             config.integer(batch), batch, config.integer(buffer)),
                 fmt::format("lower `{}`, raise `{}`, or set `post_rollout_pack_scope: window`",
                             batch, buffer));
}

void packing(Draft& config) {
  const std::string key = "training.packing";
  if (!config.boolean(key)) return;
  if (config.is_null("global_max_length")) {
    config.problem("`training.packing: true` needs `global_max_length`", key,
                   "a packed row has no cap",
                   "set `global_max_length`, or `training.packing: false`");
  }
  if (config.is_stage_2() && !config.boolean("training.packing_drop_last")) {
    config.problem("`training.packing_drop_last: false` is refused in stage 2",
                   "training.packing_drop_last",
                   "packing is carry-only: no extra steps flush the buffer at the end",
                   "set `training.packing_drop_last: true`");
  }
  carry_buffer(config);
}

void rollout_buffer(Draft& config) {
  const std::string enabled = rollout("rollout_buffer.enabled"),
                    uses = rollout("rollout_buffer.m_steps");
  if (!config.boolean(enabled)) {
    if (config.given(uses) && config.integer(uses) > 1)
      config.warn_no_effect(uses, fmt::format("`{}` is false", enabled));
  } else if (!config.is_stage_2()) {
    config.warn(fmt::format("`{}` has no effect in stage 1", enabled), enabled);
  }
}

void offload(Draft& config) {
  const std::string enabled = rollout("offload.enabled"), model = rollout("offload.offload_model"),
                    optimizer = rollout("offload.offload_optimizer");
  if (config.boolean(enabled) && !config.boolean(model) && !config.boolean(optimizer))
    config.warn_no_effect(enabled, fmt::format("`{}` and `{}` are false", model, optimizer));
}

/// Formats without coord tokens have neither bins to append nor losses on bins.
void answer_format(Draft& config) {
  const std::string key = "custom.answer_format", policy = rollout("target_policy"),
                    losses = kCoordLosses + ".enabled";
  if (config.is_null(key)) return;
  const std::string format = config.text(key);
  if (answer_formats().find(format).has_coord_tokens) return;
  if (!config.given(policy)) config.derive(policy, "rewrite", key);
  if (!config.given(losses)) config.derive(losses, false, key);
  if (config.text(policy) == "append") {
    config.problem(
        fmt::format("`target_policy: append` is not possible with `{}`", format), policy,
        "it teaches a bin at each coord token of the kept answer, and this format writes "
        "digits",
        "set `target_policy: rewrite`, or leave the key out");
  }
  if (config.boolean(losses)) {
    config.problem(fmt::format("the losses on coordinates are not possible with `{}`", format),
                   losses, "they need one token for each bin, and this format writes digits",
                   "set it to false: cross-entropy on the digits teaches the coordinates");
  }
}

void target(Draft& config) {
  const std::string policy = rollout("target_policy"), order = rollout("rewrite_order"),
                    share = rollout("rollout_share");
  const std::string data_order = "custom.object_ordering", noise = "custom.coord_input_noise";
  for (const std::string& key : {order, rollout("incomplete_rollouts")}) {
    if (config.text(policy) == "append" && config.json(key) != Values().json(key))
      config.warn_no_effect(key, fmt::format("`{}` is append", policy));
  }
  if (config.is_null(order))
    config.derive(order, config.text(data_order) == "random" ? "rollout" : "truth", data_order);
  if (config.number(noise) > 0 && config.is_stage_2() && config.number(share) >= 1)
    config.warn_no_effect(noise, fmt::format("every window rolls out (`{}`)", share));
}

void coord_loss(Draft& config) {
  const std::string enabled = kCoordLosses + ".enabled";
  for (const CoordLossKey& one : kCoordLossKeys) {
    const std::string own = rollout(one.key.name), shared = kCoordLosses + "." + one.shared_name;
    if (one.is_weight && !config.boolean(enabled) && !config.given(shared))
      config.derive(shared, 0.0, enabled + ": false");
    if (config.is_null(own)) config.derive(own, config.json(shared), shared);
  }
}

}  // namespace

void apply_rollout_rules(Draft& config) {
  packing(config);
  rollout_buffer(config);
  offload(config);
  answer_format(config);
  target(config);
  coord_loss(config);
}

}  // namespace rematch
