#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "config/rules.h"

namespace rematch {

void apply_target_rules(Values& values, bool stage_2, std::vector<Warning>& warnings) {
  const auto key = [](const char* name) { return kRolloutMatching + "." + name; };
  const auto warn = [&](std::string text, const std::string& about) {
    warnings.push_back({std::move(text), values.where(about)});
  };
  const std::string policy = key("target_policy"), order = key("rewrite_order"),
                    share = key("rollout_share");
  const std::string data_order = "custom.object_ordering", noise = "custom.coord_input_noise";
  for (const char* name : {"rewrite_order", "incomplete_rollouts"}) {
    if (values.text(policy) != "append" || values.json(key(name)) == Values().json(key(name)))
      continue;
    warn(fmt::format("`{}` has no effect: `{}` is append", key(name), policy), key(name));
  }
  if (values.is_null(order))
    values.derive(order, values.text(data_order) == "random" ? "rollout" : "truth", data_order);
  if (values.number(noise) > 0 && stage_2 && values.number(share) >= 1) {
    warn(fmt::format("`{}` has no effect: every window rolls out (`{}`)", noise, share), noise);
  }
}

}  // namespace rematch
