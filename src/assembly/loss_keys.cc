#include "assembly/loss_keys.h"

#include <fmt/core.h>

#include "config/schema.h"
#include "mstep/loss/loss_table.h"

namespace rematch {
namespace {

// The settings that config/keys_*.cc fill.
std::map<std::string, double> own_settings(const CoordLossSettings& loss) {
  std::map<std::string, double> values{{"soft_ce_weight", loss.soft_ce_weight},
                                       {"w1_weight", loss.w1_weight},
                                       {"gate_weight", loss.gate_weight},
                                       {"temperature_coord", loss.temperature_coord},
                                       {"target_sigma", loss.target_sigma}};
  if (loss.target_truncate) values["target_truncate"] = *loss.target_truncate;
  return values;
}

}  // namespace

void add_loss_keys() {
  const std::map<std::string, double> own = own_settings({.target_truncate = 0.0});
  for (const LossKey& key : loss_keys()) {
    if (own.count(key.name) > 0) continue;
    KeySpec spec = number(std::string("custom.loss.") + key.name, fmt::format("{}", key.fallback)).says(key.meaning);
    spec.low = key.low;
    spec.low_open = key.excludes_low;
    spec.fill = [name = key.name](Settings& all, const KeyValue& value) { assign(all.further_losses[name], value); };
    add_key(std::move(spec));
  }
}

LossOptions loss_options(const Settings& settings, const std::array<TokenId, 1000>& coord_token_ids) {
  LossOptions options{.settings = own_settings(settings.loss), .coord_token_ids = coord_token_ids};
  options.settings.insert(settings.further_losses.begin(), settings.further_losses.end());
  return options;
}

}  // namespace rematch
