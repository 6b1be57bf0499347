#include "program/assembly/loss_keys.h"

#include <algorithm>
#include <string_view>

#include "learn/mstep/loss/loss_table.h"
#include "program/config/schema.h"

namespace rematch {

void add_loss_keys() {
  for (const LossKey& key : loss_keys()) {
    const auto has_its_name = [&](const CoordLossKey& one) {
      return std::string_view(one.key.name) == key.name;
    };
    if (std::ranges::any_of(kCoordLossKeys, has_its_name)) continue;
    add_key(loss_key(std::string("custom.loss.") + key.name, key));
  }
}

LossOptions loss_options(const Settings& settings,
                         const std::array<TokenId, 1000>& coord_token_ids) {
  return {.settings = settings.losses, .coord_token_ids = coord_token_ids};
}

}  // namespace rematch
